// SPDX-License-Identifier: Apache-2.0
// Loop device of the kernel over an open file (loop(4)); needs root. The device is freed when the
// object and all other users have closed it.
#pragma once

#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

class LoopDevice {
 public:
  // Uses a free device, with direct I/O and blocks of 4096 bytes.
  static StatusOr<LoopDevice> Attach(int file, const std::string& name);

  const std::string& path() const { return path_; }

 private:
  LoopDevice(UniqueFd device, std::string path)
      : device_(std::move(device)), path_(std::move(path)) {}

  UniqueFd device_;
  std::string path_;
};

}  // namespace rocegw::far
