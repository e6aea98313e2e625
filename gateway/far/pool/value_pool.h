// SPDX-License-Identifier: Apache-2.0
// Pool of values by key, as rocegw_memory_blocks.h offers it. Any thread.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "gateway/far/session/api/rocegw_memory_blocks.h"
#include "gateway/far/session/waiter.h"

namespace rocegw::far {

class ValuePool {
 public:
  virtual ~ValuePool() = default;  // waits for requests
  ValuePool(const ValuePool&) = delete;
  ValuePool& operator=(const ValuePool&) = delete;

  // As rocegw_memory_blocks.h says.
  virtual int Put(std::string_view key, const void* value, uint64_t length,
                  rocegw_memory_blocks_done done, void* argument) = 0;
  virtual int Get(std::string_view key, void* buffer, uint64_t size, rocegw_memory_blocks_done done,
                  void* argument) = 0;
  // 1 or 0, or a negative errno.
  virtual int Has(std::string_view key) = 0;
  // 0, or a negative errno.
  virtual int Remove(std::string_view key) = 0;
  virtual rocegw_memory_blocks_statistics Statistics() = 0;
  virtual uint64_t block_bytes() const = 0;

  int64_t PutAndWait(std::string_view key, const void* value, uint64_t length) {
    return Wait([&](rocegw_memory_blocks_done done, void* argument) {
      return Put(key, value, length, done, argument);
    });
  }
  int64_t GetAndWait(std::string_view key, void* buffer, uint64_t size) {
    return Wait([&](rocegw_memory_blocks_done done, void* argument) {
      return Get(key, buffer, size, done, argument);
    });
  }

 protected:
  ValuePool() = default;
  // Returns when a request has ended, or a little later.
  virtual void WaitForRoom() = 0;
  // Starts a request, as often as there is no room for it, and waits for its end.
  template <typename StartRequest>
  int64_t Wait(const StartRequest& start) {
    WaiterFor<int64_t> waiter;
    int error = 0;
    while ((error = start(&WaiterFor<int64_t>::OnDone, &waiter)) == -EAGAIN) WaitForRoom();
    return error != 0 ? error : waiter.Wait();
  }
};

}  // namespace rocegw::far
