// SPDX-License-Identifier: Apache-2.0
// Devices that one session uses: CUDA, and an engine for each device that has buffers. Opening may
// take seconds (CUDA's start, a context), so the session's call queue does it: one thread at a
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/device_memory/device_buffer.h"

namespace rocegw::device_memory {

class OpenDevices {
 public:
  // library: CUDA's driver library, by name or path.
  explicit OpenDevices(std::string library) : library_(std::move(library)) {}

  // Opens an allocation. Buffers of one device share its engine, which ends with the last of them;
  // after the loss of the device the next buffer gets a new one.
  StatusOr<std::shared_ptr<DeviceBuffer>> Open(const CuUuid& device,
                                               const DeviceBuffer::Place& place);

 private:
  Status Load();
  // Returns the engine of the device; nullptr: none works.
  std::shared_ptr<DeviceEngine> Find(const CuUuid& device);

  const std::string library_;
  std::shared_ptr<const Cuda> cuda_;
  std::vector<std::weak_ptr<DeviceEngine>> engines_;
};

}  // namespace rocegw::device_memory
