// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/fault_fd.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr size_t kFaultsAtOnce = 32;

// Debian 12's headers are those of Linux 6.1; UFFDIO_POISON came with 6.6, UFFDIO_MOVE with 6.8.
constexpr uint64_t kFeaturePoison = 1 << 14;
struct PoisonCall {
  uffdio_range range;
  uint64_t mode;
  int64_t updated;
};
constexpr unsigned long kPoison = _IOWR(UFFDIO, 0x08, PoisonCall);
constexpr uint64_t kFeatureMove = 1 << 16;
struct MoveCall {
  uint64_t dst, src, len, mode;
  int64_t moved;
};
constexpr unsigned long kMove = _IOWR(UFFDIO, 0x05, MoveCall);

UniqueFd OpenDescriptor(bool* reports_system_calls) {
  constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
  *reports_system_calls = true;
  UniqueFd fd(static_cast<int>(syscall(SYS_userfaultfd, kFlags)));
  if (fd.valid()) return fd;
  const UniqueFd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
  if (device.valid()) {
    fd = UniqueFd(ioctl(device.get(), USERFAULTFD_IOC_NEW, kFlags));
    if (fd.valid()) return fd;
  }
  *reports_system_calls = false;
  return UniqueFd(static_cast<int>(syscall(SYS_userfaultfd, kFlags | UFFD_USER_MODE_ONLY)));
}

}  // namespace

Status FaultFd::Open(void* memory, size_t bytes, bool bus_errors) {
  // A descriptor whose features were refused cannot be asked again.
  for (const uint64_t move : {kFeatureMove, uint64_t{0}}) {
    fd_ = OpenDescriptor(&reports_system_calls_);
    if (!fd_.valid()) return ErrnoStatus("no userfaultfd");
    if (bus_errors && move == 0) {
      return {ENOSYS, "this kernel's userfaultfd cannot move pages (Linux 6.8)"};
    }
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | kFeaturePoison | move;
    if (bus_errors) api.features |= UFFD_FEATURE_SIGBUS;
    if (ioctl(fd_.get(), UFFDIO_API, &api) != 0) continue;
    can_move_ = move != 0;
    return Register(memory, bytes);
  }
  return {ENOSYS, "this kernel's userfaultfd cannot protect or poison pages (Linux 6.6)"};
}

Status FaultFd::Register(void* memory, size_t bytes) {
  uffdio_register range{};
  range.range = {reinterpret_cast<uintptr_t>(memory), bytes};
  range.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP;
  if (ioctl(fd_.get(), UFFDIO_REGISTER, &range) != 0) return ErrnoStatus("UFFDIO_REGISTER");
  return OkStatus();
}

bool FaultFd::Unregister(void* memory, size_t bytes) {
  uffdio_range range{reinterpret_cast<uintptr_t>(memory), bytes};
  const bool done = ioctl(fd_.get(), UFFDIO_UNREGISTER, &range) == 0;
  if (done) Wake(reinterpret_cast<uintptr_t>(memory), bytes);
  return done;
}

bool FaultFd::Move(uintptr_t address, uintptr_t to) {
  MoveCall move{};
  move.dst = to;
  move.src = address;
  move.len = 4096;
  while (ioctl(fd_.get(), kMove, &move) != 0) {
    if (errno != EAGAIN) return false;
  }
  return true;
}

std::vector<FaultFd::Fault> FaultFd::Take() {
  std::array<uffd_msg, kFaultsAtOnce> messages;
  std::vector<Fault> faults;
  const ssize_t got = read(fd_.get(), messages.data(), sizeof messages);
  for (size_t number = 0; got > 0 && number < static_cast<size_t>(got) / sizeof(uffd_msg);
       number++) {
    const uffd_msg& message = messages[number];
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    const uint64_t flags = message.arg.pagefault.flags;
    faults.push_back({static_cast<uintptr_t>(message.arg.pagefault.address),
                      (flags & UFFD_PAGEFAULT_FLAG_WP) != 0,
                      (flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0});
  }
  return faults;
}

void FaultFd::Fill(uintptr_t address, const void* data, size_t bytes, bool protect) {
  size_t done = 0;
  while (done < bytes) {
    uffdio_copy copy{};
    copy.dst = address + done;
    copy.src = reinterpret_cast<uintptr_t>(data) + done;
    copy.len = bytes - done;
    copy.mode = protect ? UFFDIO_COPY_MODE_WP : 0;
    if (ioctl(fd_.get(), UFFDIO_COPY, &copy) == 0) return;
    if (copy.copy > 0) {
      done += static_cast<size_t>(copy.copy);
    } else if (errno == EEXIST) {
      // Only this process's own UFFDIO_ZEROPAGE or a remap could have put a page there.
      Wake(address + done, 4096);
      done += 4096;
    } else if (errno == ENOMEM) {
      // Without the page a thread cannot go on: the kernel makes room, or kills a process.
      poll(nullptr, 0, 1);
    } else if (errno != EAGAIN) {
      // The memory is not registered any more: threads that wait find what is there now.
      Wake(address + done, bytes - done);
      return;
    }
  }
}

void FaultFd::Poison(uintptr_t address) {
  PoisonCall poison{};
  poison.range = {address, 4096};
  while (ioctl(fd_.get(), kPoison, &poison) != 0 && errno == EAGAIN) {
  }
}

void FaultFd::SetProtection(uintptr_t address, size_t bytes, uint64_t mode) {
  uffdio_writeprotect protect{};
  protect.range = {address, bytes};
  protect.mode = mode;
  while (ioctl(fd_.get(), UFFDIO_WRITEPROTECT, &protect) != 0 && errno == EAGAIN) {
  }
}

void FaultFd::Protect(uintptr_t address, size_t bytes) {
  SetProtection(address, bytes, UFFDIO_WRITEPROTECT_MODE_WP);
}

void FaultFd::Unprotect(uintptr_t address, size_t bytes) { SetProtection(address, bytes, 0); }

void FaultFd::Wake(uintptr_t address, size_t bytes) {
  uffdio_range range{address, bytes};
  ioctl(fd_.get(), UFFDIO_WAKE, &range);
}

}  // namespace rocegw::far
