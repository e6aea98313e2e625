// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/swap/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr int kAttempts = 16;  // other programs take free devices as well

}  // namespace

StatusOr<LoopDevice> LoopDevice::Attach(int file, const std::string& name) {
  const UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control.valid()) return ErrnoStatus("/dev/loop-control");
  for (int attempt = 0; attempt < kAttempts; attempt++) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return ErrnoStatus("no free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    UniqueFd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.valid()) return ErrnoStatus(path);
    loop_config config{};
    config.fd = static_cast<__u32>(file);
    config.block_size = 4096;
    config.info.lo_flags = LO_FLAGS_DIRECT_IO | LO_FLAGS_AUTOCLEAR;
    const size_t bytes = std::min(name.size(), sizeof config.info.lo_file_name - 1);
    std::memcpy(config.info.lo_file_name, name.data(), bytes);
    if (ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) {
      return LoopDevice(std::move(device), std::move(path));
    }
    if (errno != EBUSY) return ErrnoStatus(path);
  }
  return Status{EBUSY, "other programs take every free loop device"};
}

}  // namespace rocegw::far
