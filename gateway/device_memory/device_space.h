// SPDX-License-Identifier: Apache-2.0
// Memory of a client that has registered device memory: operations on addresses of a buffer go to
// its device, all others to the client's ordinary memory. CUDA's addresses never coincide with
// those of host memory in one process, so the address decides. Executed by the session's copier
// thread, because a device may keep its caller waiting. Any thread adds and removes buffers.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "gateway/device_memory/device_buffer.h"
#include "gateway/memory/memory_op.h"

namespace rocegw::device_memory {

class DeviceSpace final : public memory::MemorySpace {
 public:
  explicit DeviceSpace(std::shared_ptr<memory::MemorySpace> host) : host_(std::move(host)) {}

  // Several buffers may have the same addresses: a program registers parts of one allocation, or
  // allocates again where it freed. Operations go to the one that was added last.
  void Add(std::shared_ptr<DeviceBuffer> buffer);
  void Remove(const DeviceBuffer* buffer);

  size_t Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts& counts) override;
  bool Gone() const override { return host_->Gone(); }

 private:
  // Returns the buffer that holds the byte; nullptr: the address is of host memory.
  std::shared_ptr<DeviceBuffer> Find(uint64_t address);

  const std::shared_ptr<memory::MemorySpace> host_;
  std::mutex mutex_;  // guards the next field; never held during an access
  std::vector<std::shared_ptr<DeviceBuffer>> buffers_;  // in the order of Add
  std::atomic<size_t> count_{0};
};

}  // namespace rocegw::device_memory
