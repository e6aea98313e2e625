// SPDX-License-Identifier: Apache-2.0
// Devices that one session uses: the drivers' libraries, and an engine for each device that has
// buffers. Opening may take seconds (the driver's start, a context), so the session's call queue
// does it: one thread at a time.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gateway/device_memory/device_buffer.h"

namespace rocegw::device_memory {

class OpenDevices {
 public:
  explicit OpenDevices(DriverLibraries libraries, CallDriver calls = {})
      : libraries_(std::move(libraries)), calls_(std::move(calls)) {}

  struct Wish {
    DriverKind kind = DriverKind::kCuda;
    CuUuid device{};
    DeviceBuffer::Place place;
    // Costs of the engine, if the opening makes one.
    std::shared_ptr<EngineCosts> costs;
  };
  // Opens an allocation. Buffers of one device share its engine, which ends with the last of them.
  // After the loss of the device the next buffer gets a new engine.
  StatusOr<std::shared_ptr<DeviceBuffer>> Open(const Wish& wish);

 private:
  struct Context {
    CuContext context = nullptr;
    bool primary = false;
  };

  StatusOr<std::shared_ptr<DeviceBuffer>> OpenHere(const Wish& wish);
  Status Load(DriverKind kind);
  // Finds the context of an address of this process.
  StatusOr<Context> ContextOf(const Driver& driver, const Wish& wish);
  // Returns the engine of the device; nullptr: none works.
  std::shared_ptr<DeviceEngine> Find(DriverKind kind, const CuUuid& device, CuContext context);

  const DriverLibraries libraries_;
  const CallDriver calls_;
  std::array<std::shared_ptr<const Driver>, 2> drivers_;
  std::vector<std::weak_ptr<DeviceEngine>> engines_;
};

}  // namespace rocegw::device_memory
