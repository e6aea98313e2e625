// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/open_devices.h"

#include <cstring>

namespace rocegw::device_memory {

Status OpenDevices::Load() {
  if (cuda_ != nullptr) return OkStatus();
  auto cuda = Cuda::Load(library_);
  if (!cuda.ok()) return cuda.status();
  cuda_ = *cuda;
  return OkStatus();
}

std::shared_ptr<DeviceEngine> OpenDevices::Find(const CuUuid& device) {
  std::erase_if(engines_, [](const std::weak_ptr<DeviceEngine>& engine) {
    const auto alive = engine.lock();
    return alive == nullptr || alive->lost();
  });
  for (const std::weak_ptr<DeviceEngine>& engine : engines_) {
    auto alive = engine.lock();
    if (alive != nullptr && std::memcmp(&alive->device(), &device, sizeof device) == 0)
      return alive;
  }
  return nullptr;
}

StatusOr<std::shared_ptr<DeviceBuffer>> OpenDevices::Open(const CuUuid& device,
                                                          const DeviceBuffer::Place& place) {
  const Status loaded = Load();
  if (!loaded.ok()) return loaded;
  if (const auto found = Find(device); found != nullptr) return DeviceBuffer::Open(found, place);
  auto engine = DeviceEngine::Open(cuda_, device);
  if (!engine.ok()) return engine.status();
  engines_.push_back(*engine);
  return DeviceBuffer::Open(*engine, place);
}

}  // namespace rocegw::device_memory
