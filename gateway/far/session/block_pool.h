// SPDX-License-Identifier: Apache-2.0
// Block pool over a session's request path: values by key in blocks of its space. Any thread; one
// lock guards the index and is never held while data is transferred.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "gateway/far/pool/block_index.h"
#include "gateway/far/pool/value_pool.h"
#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

class BlockPool final : public ValuePool {
 public:
  // The dispatcher outlives the pool; the range is within its space.
  BlockPool(Dispatcher& dispatcher, uint64_t offset, uint64_t size, uint64_t block_bytes);
  ~BlockPool() override;

  int Put(std::string_view key, const void* value, uint64_t length, rocegw_memory_blocks_done done,
          void* argument) override;
  int Get(std::string_view key, void* buffer, uint64_t size, rocegw_memory_blocks_done done,
          void* argument) override;
  int Has(std::string_view key) override;
  int Remove(std::string_view key) override;
  rocegw_memory_blocks_statistics Statistics() override;
  uint64_t block_bytes() const override { return block_bytes_; }

 private:
  struct Request;

  int Start(Request* request, uint8_t* buffer);
  static void OnPartDone(void* argument, int status);
  void Finish(Request* request);
  void WaitForRoom() override;

  Dispatcher& dispatcher_;
  const uint64_t offset_;
  const uint64_t block_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  BlockIndex index_;
  rocegw_memory_blocks_statistics counts_{};
};

}  // namespace rocegw::far
