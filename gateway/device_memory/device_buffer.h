// SPDX-License-Identifier: Apache-2.0
// Allocation of a client in the memory of a GPU, opened by the gateway through the client's IPC
// handle. The handle reaches that allocation alone. Opened and closed by threads that may wait for
// the device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gateway/device_memory/device_engine.h"

namespace rocegw::device_memory {

class DeviceBuffer {
 public:
  struct Place {
    CuIpcHandle handle{};
    uint64_t address = 0;  // address of the allocation in the client
    uint64_t length = 0;
  };
  // EINVAL: the handle opens no allocation of that length.
  static StatusOr<std::shared_ptr<DeviceBuffer>> Open(std::shared_ptr<DeviceEngine> engine,
                                                      const Place& place);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  uint64_t address() const { return place_.address; }
  uint64_t length() const { return place_.length; }
  const DeviceEngine& engine() const { return *engine_; }
  bool Holds(uint64_t address, uint64_t bytes) const {
    return address >= place_.address && address - place_.address <= place_.length &&
           bytes <= place_.length - (address - place_.address);
  }
  // See DeviceEngine::Execute. The operations must be held.
  size_t Execute(std::span<memory::MemoryOp> ops) {
    return engine_->Execute(ops, memory_, place_.address);
  }

 private:
  DeviceBuffer(std::shared_ptr<DeviceEngine> engine, const Place& place)
      : engine_(std::move(engine)), place_(place) {}

  const std::shared_ptr<DeviceEngine> engine_;
  const Place place_;
  CuPointer memory_ = 0;
  bool opened_ = false;  // through the handle
};

}  // namespace rocegw::device_memory
