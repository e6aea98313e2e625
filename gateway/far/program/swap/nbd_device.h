// SPDX-License-Identifier: Apache-2.0
// Network block device of the kernel (driver nbd) over a space that this process serves; needs
// root.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/nbd/transmission.h"

namespace rocegw::far {

class NbdDevice {
 public:
  // Whether the kernel has the driver.
  static bool IsThere();
  // Uses a free device, with blocks of 4096 bytes, for [0, size) of the space, which outlives the
  // object.
  static StatusOr<std::unique_ptr<NbdDevice>> Attach(Space& space, uint64_t size);
  // Disconnects; no program uses the device.
  ~NbdDevice();
  NbdDevice(const NbdDevice&) = delete;
  NbdDevice& operator=(const NbdDevice&) = delete;

  const std::string& path() const { return path_; }

 private:
  NbdDevice(UniqueFd device, std::string path, UniqueFd socket, Space& space, uint64_t size);
  // Waits until the driver runs, which the device's size shows: it has none before.
  bool AwaitSize(uint64_t size) const;

  const UniqueFd device_;
  const std::string path_;
  const UniqueFd socket_;  // this process's end
  Transmission transmission_;
  std::thread serving_;
  std::thread driver_;  // in the kernel, as long as the device is connected
};

}  // namespace rocegw::far
