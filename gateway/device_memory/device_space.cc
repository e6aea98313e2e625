// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/device_space.h"

#include <algorithm>

namespace rocegw::device_memory {

void DeviceSpace::Add(std::shared_ptr<DeviceBuffer> buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  buffers_.push_back(std::move(buffer));
  count_.store(buffers_.size(), std::memory_order_release);
}

void DeviceSpace::Remove(const DeviceBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(buffers_, [buffer](const auto& one) { return one.get() == buffer; });
  count_.store(buffers_.size(), std::memory_order_release);
}

std::shared_ptr<DeviceBuffer> DeviceSpace::Find(uint64_t address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(buffers_.rbegin(), buffers_.rend(),
                                  [address](const auto& one) { return one->Holds(address, 1); });
  return found == buffers_.rend() ? nullptr : *found;
}

size_t DeviceSpace::Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts& counts) {
  if (count_.load(std::memory_order_acquire) == 0) return host_->Execute(ops, counts);
  for (size_t begin = 0; begin < ops.size();) {
    const std::shared_ptr<DeviceBuffer> buffer = Find(ops[begin].address);
    size_t end = begin + 1;
    if (buffer == nullptr) {
      while (end < ops.size() && Find(ops[end].address) == nullptr) ++end;
      const size_t done = host_->Execute(ops.subspan(begin, end - begin), counts);
      begin += done;
      if (begin != end) return begin;
      continue;
    }
    // An operation that leaves its buffer is not of one registration.
    if (!buffer->Holds(ops[begin].address, ops[begin].length)) return begin;
    while (end < ops.size() && Find(ops[end].address) == buffer &&
           buffer->Holds(ops[end].address, ops[end].length)) {
      ++end;
    }
    const size_t done = buffer->Execute(ops.subspan(begin, end - begin));
    for (size_t i = begin; i < begin + done; ++i) {
      ops[i].crc_valid = false;
      ++counts.device_operations;
      counts.device_bytes += ops[i].length;
    }
    begin += done;
    if (begin != end) return begin;
  }
  return ops.size();
}

}  // namespace rocegw::device_memory
