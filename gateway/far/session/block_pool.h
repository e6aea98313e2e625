// SPDX-License-Identifier: Apache-2.0
// Block pool over a session's request path: values by key in blocks of its space. Any thread; one
// lock guards the index and is never held while data is transferred.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "gateway/far/pool/block_index.h"
#include "gateway/far/session/api/rocegw_memory_blocks.h"
#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

class BlockPool {
 public:
  static constexpr uint64_t kMostBlockBytes = 16 << 20;

  // The dispatcher outlives the pool; the range is within its space.
  BlockPool(Dispatcher& dispatcher, uint64_t offset, uint64_t size, uint64_t block_bytes);
  ~BlockPool();  // waits for requests
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // As rocegw_memory_blocks.h says.
  int Put(std::string_view key, const void* value, uint64_t length, rocegw_memory_blocks_done done,
          void* argument);
  int Get(std::string_view key, void* buffer, uint64_t size, rocegw_memory_blocks_done done,
          void* argument);
  int64_t PutAndWait(std::string_view key, const void* value, uint64_t length);
  int64_t GetAndWait(std::string_view key, void* buffer, uint64_t size);
  bool Has(std::string_view key);
  bool Remove(std::string_view key);
  rocegw_memory_blocks_statistics Statistics();

 private:
  struct Request;

  int Start(Request* request, uint8_t* buffer);
  static void OnPartDone(void* argument, int status);
  void Finish(Request* request);
  int64_t Wait(const std::function<int(rocegw_memory_blocks_done, void*)>& start);

  Dispatcher& dispatcher_;
  const uint64_t offset_;
  const uint64_t block_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  BlockIndex index_;
  rocegw_memory_blocks_statistics counts_{};
};

}  // namespace rocegw::far
