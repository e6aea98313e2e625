// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/passed_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "gateway/base/descriptor_message.h"
#include "gateway/memory/descriptor.h"
#include "gateway/memory/dma_buf.h"
#include "gateway/session/socket_cookie.h"

namespace rocegw::session {
namespace {

PassedDescriptor JudgeMemory(UniqueFd& fd) {
  PassedDescriptor passed;
  passed.status = memory::DescriptorMemory::Check(fd.get());
  if (passed.status.ok()) passed.fd = std::move(fd);
  return passed;
}

PassedDescriptor JudgeEventChannel(UniqueFd& fd, uint64_t wanted) {
  PassedDescriptor passed;
  if (CookieOf(fd.get()) == wanted) passed.fd = std::move(fd);
  return passed;
}

PassedDescriptor JudgeDmaBuf(UniqueFd& fd) {
  PassedDescriptor passed;
  passed.status = memory::CheckDmaBuf(fd.get());
  if (passed.status.ok()) passed.fd = std::move(fd);
  return passed;
}

// The driver's library finds out whether the file is of an allocation.
PassedDescriptor JudgeDeviceMemory(UniqueFd& fd) {
  constexpr unsigned kNvidia = 195;  // number of the driver's character devices (devices.txt)
  PassedDescriptor passed;
  struct stat file {};
  const bool known =
      memory::CheckDmaBuf(fd.get()).ok() || ::fcntl(fd.get(), F_GET_SEALS) >= 0 ||
      (::fstat(fd.get(), &file) == 0 && S_ISCHR(file.st_mode) && major(file.st_rdev) == kNvidia);
  if (known) {
    passed.fd = std::move(fd);
  } else {
    passed.status = Status(EINVAL, "descriptor is not of a GPU's memory");
  }
  return passed;
}

// A descriptor with O_PATH keeps the inode, so that its number names no other file, and has nothing
// to write back when it is closed. The inode is what the kernel has cached.
PassedDescriptor JudgeFile(const UniqueFd& fd) {
  PassedDescriptor passed;
  struct statx known {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd.get());
  passed.fd.Reset(::open(link.c_str(), O_PATH | O_CLOEXEC));
  if (!passed.fd.valid() ||
      statx(passed.fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &known) != 0) {
    passed.status = Status(EBADF, "not a file");
    passed.fd.Reset();
    return passed;
  }
  passed.device = uint64_t{known.stx_dev_major} << 32 | known.stx_dev_minor;
  passed.inode = known.stx_ino;
  return passed;
}

PassedDescriptor Judge(UniqueFd& fd, const WantedDescriptor& wanted) {
  switch (wanted.kind) {
    case PassedKind::kProcessMemory:
      return JudgeMemory(fd);
    case PassedKind::kEventChannel:
      return JudgeEventChannel(fd, wanted.cookie);
    case PassedKind::kDmaBuf:
      return JudgeDmaBuf(fd);
    case PassedKind::kDeviceMemory:
      return JudgeDeviceMemory(fd);
    case PassedKind::kFile:
      return JudgeFile(fd);
    case PassedKind::kNone:
      break;
  }
  return {};
}

}  // namespace

ReceivedDescriptor ReceiveAndJudge(int socket, const WantedDescriptor& wanted) {
  std::array<uint8_t, 1> byte{};
  DescriptorMessage message = ReceiveDescriptors(socket, byte, MSG_DONTWAIT);
  ReceivedDescriptor received;
  if (wanted.kind == PassedKind::kNone) {
    received.passed.status = OkStatus();
  } else if (message.fds.size() == 1) {
    received.passed = Judge(message.fds.front(), wanted);
  } else {
    received.passed.status = Status(EINVAL, "a request has not exactly one descriptor");
  }
  received.passed.received = message.length >= 0;
  received.others = std::move(message.fds);
  return received;
}

}  // namespace rocegw::session
