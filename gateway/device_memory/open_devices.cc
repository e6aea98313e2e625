// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/open_devices.h"

#include <cerrno>
#include <utility>

namespace rocegw::device_memory {

Status OpenDevices::Load(DriverKind kind) {
  auto& known = drivers_[static_cast<size_t>(kind)];
  if (known != nullptr) return OkStatus();
  auto driver = Driver::Load(kind, kind == DriverKind::kCuda ? libraries_.cuda : libraries_.hip);
  if (!driver.ok()) return driver.status();
  known = *driver;
  return OkStatus();
}

StatusOr<OpenDevices::Context> OpenDevices::ContextOf(const Driver& driver, const Wish& wish) {
  if (wish.place.by != DeviceBuffer::Place::By::kOwnAddress) return Context{};
  if (!driver.knows_own_memory()) {
    return driver.Error(EOPNOTSUPP, "the library does not tell about addresses");
  }
  Context found;
  const CuResult known = driver.attribute(&found.context, kCuAttributeContext, wish.place.address);
  if (known == kCuSuccess && found.context != nullptr) return found;
  // Memory of no context belongs to the device; its primary context reaches it.
  auto device = driver.Find(wish.device);
  if (!device.ok()) return device.status();
  if (driver.retain_primary(&found.context, *device) != kCuSuccess) {
    return driver.Error(EIO, "no primary context");
  }
  found.primary = true;
  return found;
}

std::shared_ptr<DeviceEngine> OpenDevices::Find(DriverKind kind, const CuUuid& device,
                                                CuContext context) {
  std::shared_ptr<DeviceEngine> found;
  std::erase_if(engines_, [&](const std::weak_ptr<DeviceEngine>& one) {
    const auto engine = one.lock();
    if (engine == nullptr) return true;
    if (engine->lost()) {
      // A process may open another process's handles in one context only.
      engine->End();
      return true;
    }
    if (engine->driver().kind == kind && engine->IsFor(device, context)) found = engine;
    return false;
  });
  return found;
}

StatusOr<std::shared_ptr<DeviceBuffer>> OpenDevices::Open(const Wish& wish) {
  StatusOr<std::shared_ptr<DeviceBuffer>> opened = Status(EIO, "not opened");
  Call(calls_, [&] { opened = OpenHere(wish); });
  return opened;
}

StatusOr<std::shared_ptr<DeviceBuffer>> OpenDevices::OpenHere(const Wish& wish) {
  const Status loaded = Load(wish.kind);
  if (!loaded.ok()) return loaded;
  const auto& driver = drivers_[static_cast<size_t>(wish.kind)];
  auto context = ContextOf(*driver, wish);
  if (!context.ok()) return context.status();
  if (const auto found = Find(wish.kind, wish.device, context->context); found != nullptr) {
    // The engine has retained it, too.
    if (context->primary) driver->release_primary(found->ordinal());
    return DeviceBuffer::Open(found, wish.place);
  }
  auto engine = DeviceEngine::Open(driver, {.device = wish.device,
                                            .context = context->context,
                                            .primary = context->primary,
                                            .calls = calls_,
                                            .costs = wish.costs});
  if (!engine.ok()) return engine.status();
  engines_.push_back(*engine);
  return DeviceBuffer::Open(*engine, wish.place);
}

}  // namespace rocegw::device_memory
