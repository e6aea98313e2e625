// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/device_buffer.h"

#include <cerrno>

namespace rocegw::device_memory {

StatusOr<std::shared_ptr<DeviceBuffer>> DeviceBuffer::Open(std::shared_ptr<DeviceEngine> engine,
                                                           const Place& place) {
  const Driver& driver = engine->driver();
  const CurrentContext current(driver, engine->context());
  std::shared_ptr<DeviceBuffer> buffer(new DeviceBuffer(std::move(engine), place));
  if (!current.ok()) return driver.Error(EIO, "the device is lost");
  const Status opened = buffer->OpenIn(place);
  if (!opened.ok()) return opened;
  return buffer;
}

Status DeviceBuffer::OpenIn(const Place& place) {
  const Driver& driver = engine_->driver();
  switch (place.by) {
    case Place::By::kDescriptor:
      return OpenDescriptor(place);
    case Place::By::kOwnAddress:
      memory_ = place.address;
      break;
    case Place::By::kHandle:
      if (driver.open_handle(&memory_, place.handle, kCuIpcLazyPeerAccess) != kCuSuccess) {
        return driver.Error(EINVAL, "the handle opens nothing");
      }
      opened_ = Opened::kHandle;
      break;
  }
  // The client may say a greater length than the allocation has.
  CuPointer base = 0;
  size_t length = 0;
  const bool fits = driver.address_range(&base, &length, memory_) == kCuSuccess &&
                    base == memory_ && length_ != 0 && length_ <= length;
  return fits ? OkStatus() : driver.Error(EINVAL, "the allocation has another length");
}

// The driver maps no more than the allocation has.
Status DeviceBuffer::OpenDescriptor(const Place& place) {
  const Driver& driver = engine_->driver();
  if (!driver.opens_descriptors()) {
    return driver.Error(EOPNOTSUPP, "the library opens no descriptors of allocations");
  }
  CuAllocation allocation = 0;
  auto* const descriptor = reinterpret_cast<void*>(intptr_t{place.descriptor->get()});
  if (driver.import(&allocation, descriptor, kCuPosixDescriptor) != kCuSuccess) {
    return driver.Error(EINVAL, "the descriptor is of no allocation");
  }
  if (length_ != 0 && driver.reserve(&memory_, length_, 0, 0, 0) == kCuSuccess) {
    opened_ = Opened::kReserved;
    if (driver.map(memory_, length_, 0, allocation, 0) == kCuSuccess) opened_ = Opened::kMapped;
  }
  // A mapping keeps the allocation.
  driver.release(allocation);
  if (opened_ != Opened::kMapped) {
    return driver.Error(EINVAL, "the allocation has another length");
  }
  const CuAccess access{1, engine_->ordinal(), 3};
  if (driver.set_access(memory_, length_, &access, 1) != kCuSuccess) {
    return driver.Error(EINVAL, "the device does not reach the allocation");
  }
  return OkStatus();
}

void DeviceBuffer::Close() {
  const Driver& driver = engine_->driver();
  const CurrentContext current(driver, engine_->context());
  if (!current.ok()) return;
  if (opened_ == Opened::kHandle) {
    driver.close_handle(memory_);
    return;
  }
  if (opened_ == Opened::kMapped) driver.unmap(memory_, length_);
  driver.free_reserved(memory_, length_);
}

DeviceBuffer::~DeviceBuffer() {
  // The end of a lost device's context closes what was opened there.
  if (opened_ == Opened::kNothing || engine_->lost()) return;
  Call(engine_->calls(), [this] { Close(); });
}

}  // namespace rocegw::device_memory
