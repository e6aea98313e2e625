// SPDX-License-Identifier: Apache-2.0
// System calls that bypass the C library's entry points: those are cancellation points, and
// programs (and their other preloaded libraries) replace some of them. Results are the kernel's,
// -errno for errors; errno is not touched.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace rocegw::client {

// Converts an argument to register width: the whole register is passed, so an int must be widened.
template <typename T>
inline long ToRegister(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline long ToRegister(decltype(nullptr)) { return 0; }
inline long ToRegister(long value) { return value; }
inline long ToRegister(unsigned long value) { return static_cast<long>(value); }
inline long ToRegister(int value) { return value; }
inline long ToRegister(unsigned value) { return static_cast<long>(value); }

template <typename... Arguments>
inline long RawSyscall(long number, Arguments... arguments) {
  const int saved = errno;
  const long result = syscall(number, ToRegister(arguments)...);
  if (result >= 0) return result;
  const long error = -errno;
  errno = saved;
  return error;
}

inline long RawOpen(const char* path, int flags) {
  return RawSyscall(SYS_openat, AT_FDCWD, path, flags, 0);
}
inline long RawClose(int fd) {
#if defined(__SANITIZE_THREAD__)
  return close(fd);  // ThreadSanitizer tracks descriptors by the C library's entry points
#else
  return RawSyscall(SYS_close, fd);
#endif
}
inline long RawFcntl(int fd, int command, long argument) {
  return RawSyscall(SYS_fcntl, fd, command, argument);
}
inline long RawRead(int fd, void* to, size_t size) { return RawSyscall(SYS_read, fd, to, size); }
inline long RawIoctl(int fd, unsigned long request, void* argument) {
  return RawSyscall(SYS_ioctl, fd, request, argument);
}
inline long RawSendMessage(int fd, const msghdr* message, int flags) {
  return RawSyscall(SYS_sendmsg, fd, message, flags);
}
inline long RawReceiveMessage(int fd, msghdr* message, int flags) {
  return RawSyscall(SYS_recvmsg, fd, message, flags);
}
// Returns 0 or an errno value; waits for an interrupted attempt.
inline int RawConnect(int fd, const void* address, socklen_t length) {
  long result;
  do {
    result = RawSyscall(SYS_connect, fd, address, length);
  } while (result == -EINTR);
  return static_cast<int>(-result);
}
inline long RawPoll(pollfd* fds, unsigned count, int timeout_ms) {
#if defined(SYS_poll)
  return RawSyscall(SYS_poll, fds, count, timeout_ms);
#else
  const timespec wait = {timeout_ms / 1000, (timeout_ms % 1000) * 1000000L};
  return RawSyscall(SYS_ppoll, fds, count, timeout_ms < 0 ? nullptr : &wait, nullptr, 0);
#endif
}
// Returns MAP_FAILED on an error.
inline void* RawMap(void* address, size_t size, int protection, int flags, int fd,
                    uint64_t offset) {
  const long result = RawSyscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return result < 0 && result > -4096 ? MAP_FAILED : reinterpret_cast<void*>(result);
}
inline long RawUnmap(void* address, size_t size) { return RawSyscall(SYS_munmap, address, size); }
inline long RawAdvise(void* address, size_t size, int advice) {
  return RawSyscall(SYS_madvise, address, size, advice);
}

}  // namespace rocegw::client
