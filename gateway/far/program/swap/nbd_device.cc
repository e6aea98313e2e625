// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/program/swap/nbd_device.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/nbd.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr int kMostDevices = 64;
constexpr unsigned long kBlock = 4096;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

bool NbdDevice::IsThere() { return Exists("/sys/block/nbd0"); }

StatusOr<std::unique_ptr<NbdDevice>> NbdDevice::Attach(Space& space, uint64_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return ErrnoStatus("socketpair");
  UniqueFd ours(ends[0]);
  const UniqueFd kernels(ends[1]);
  for (int number = 0; number < kMostDevices; number++) {
    const std::string name = "nbd" + std::to_string(number);
    // The process id is there while the device is connected.
    if (!Exists("/sys/block/" + name)) break;
    if (Exists("/sys/block/" + name + "/pid")) continue;
    const std::string path = "/dev/" + name;
    UniqueFd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.valid()) return ErrnoStatus(path);
    if (ioctl(device.get(), NBD_SET_SOCK, kernels.get()) != 0) {
      if (errno == EBUSY) continue;  // another program was faster
      return ErrnoStatus(path);
    }
    if (ioctl(device.get(), NBD_SET_BLKSIZE, kBlock) != 0 ||
        ioctl(device.get(), NBD_SET_SIZE_BLOCKS, size / kBlock) != 0 ||
        ioctl(device.get(), NBD_SET_FLAGS, static_cast<unsigned long>(Transmission::kFlags)) != 0) {
      const Status status = ErrnoStatus(path);
      ioctl(device.get(), NBD_CLEAR_SOCK);
      return status;
    }
    std::unique_ptr<NbdDevice> attached(
        new NbdDevice(std::move(device), path, std::move(ours), space, size));
    if (!attached->AwaitSize(size)) return Status{EIO, path + ": the driver does not start"};
    return attached;
  }
  return Status{ENODEV, "no nbd device is free"};
}

NbdDevice::NbdDevice(UniqueFd device, std::string path, UniqueFd socket, Space& space,
                     uint64_t size)
    : device_(std::move(device)),
      path_(std::move(path)),
      socket_(std::move(socket)),
      transmission_(space, size, socket_.get()) {
  serving_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "rocegw-far-nbd");
    if (const Status status = transmission_.Run(); !status.ok()) spdlog::error(status.text());
  });
  driver_ = std::thread([this] { ioctl(device_.get(), NBD_DO_IT); });
}

bool NbdDevice::AwaitSize(uint64_t size) const {
  constexpr int kTries = 1000;
  constexpr int kLookAgainMs = 10;
  for (int i = 0; i < kTries; i++) {
    uint64_t now = 0;
    if (ioctl(device_.get(), BLKGETSIZE64, &now) == 0 && now == size) return true;
    (void)poll(nullptr, 0, kLookAgainMs);
  }
  return false;
}

NbdDevice::~NbdDevice() {
  ioctl(device_.get(), NBD_DISCONNECT);
  ioctl(device_.get(), NBD_CLEAR_SOCK);
  shutdown(socket_.get(), SHUT_RDWR);
  driver_.join();
  serving_.join();
}

}  // namespace rocegw::far
