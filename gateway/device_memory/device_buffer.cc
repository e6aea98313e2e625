// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/device_buffer.h"

#include <cerrno>

namespace rocegw::device_memory {

StatusOr<std::shared_ptr<DeviceBuffer>> DeviceBuffer::Open(std::shared_ptr<DeviceEngine> engine,
                                                           const Place& place) {
  const Cuda& cuda = engine->cuda();
  const CurrentContext current(cuda, engine->context());
  std::shared_ptr<DeviceBuffer> buffer(new DeviceBuffer(std::move(engine), place));
  if (!current.ok()) return Status(EIO, "CUDA: the device is lost");
  if (cuda.open_handle(&buffer->memory_, place.handle, kCuIpcLazyPeerAccess) != kCuSuccess) {
    return Status(EINVAL, "CUDA: the handle opens nothing");
  }
  buffer->opened_ = true;
  // The client may say a greater length than the allocation has.
  CuPointer base = 0;
  size_t length = 0;
  const bool fits = cuda.address_range(&base, &length, buffer->memory_) == kCuSuccess &&
                    base == buffer->memory_ && place.length != 0 && place.length <= length;
  if (!fits) return Status(EINVAL, "CUDA: the allocation has another length");
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (!opened_ || engine_->lost()) return;
  const CurrentContext current(engine_->cuda(), engine_->context());
  if (current.ok()) engine_->cuda().close_handle(memory_);
}

}  // namespace rocegw::device_memory
