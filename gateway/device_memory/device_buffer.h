// SPDX-License-Identifier: Apache-2.0
// Allocation of a client in the memory of a GPU, opened by the gateway through an IPC handle or a
// descriptor, either of which reaches that allocation alone. A gateway in the program's own process
// uses the program's address. Opened and closed by threads that may wait for the device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gateway/base/unique_fd.h"
#include "gateway/device_memory/device_engine.h"

namespace rocegw::device_memory {

class DeviceBuffer {
 public:
  struct Place {
    enum class By : uint8_t { kHandle, kDescriptor, kOwnAddress };
    By by = By::kHandle;
    CuIpcHandle handle{};
    std::shared_ptr<const UniqueFd> descriptor;
    uint64_t address = 0;  // address of the allocation in the client
    uint64_t length = 0;
  };
  // EINVAL: the handle or descriptor opens no allocation of that length. EOPNOTSUPP: the driver's
  // library is too old.
  static StatusOr<std::shared_ptr<DeviceBuffer>> Open(std::shared_ptr<DeviceEngine> engine,
                                                      const Place& place);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  uint64_t address() const { return address_; }
  uint64_t length() const { return length_; }
  const DeviceEngine& engine() const { return *engine_; }
  bool Holds(uint64_t address, uint64_t bytes) const {
    return address >= address_ && address - address_ <= length_ &&
           bytes <= length_ - (address - address_);
  }
  // See DeviceEngine::Execute. The operations must be held.
  size_t Execute(std::span<memory::MemoryOp> ops) {
    return engine_->Execute(ops, memory_, address_);
  }

 private:
  // Steps that the end undoes.
  enum class Opened : uint8_t { kNothing, kHandle, kReserved, kMapped };

  DeviceBuffer(std::shared_ptr<DeviceEngine> engine, const Place& place)
      : engine_(std::move(engine)), address_(place.address), length_(place.length) {}
  Status OpenIn(const Place& place);
  Status OpenDescriptor(const Place& place);
  void Close();

  const std::shared_ptr<DeviceEngine> engine_;
  const uint64_t address_;
  const uint64_t length_;
  CuPointer memory_ = 0;
  Opened opened_ = Opened::kNothing;
};

}  // namespace rocegw::device_memory
