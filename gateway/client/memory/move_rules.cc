// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/move_rules.h"

#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "gateway/client/memory/memory_map.h"
#include "gateway/client/process/environment.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/report.h"

namespace rocegw::client {

namespace {

constexpr int kXdp = 44;                 // AF_XDP
constexpr unsigned long kOfAddress = 2;  // MPOL_F_ADDR
// Limit on resident memory: looking up properties takes about 50 us per MiB of it, moving 500 us
// per MiB.
constexpr uint64_t kMostResidentPerByte = 256;

// Calls visit(name) for the entries of a directory below /proc/self while it returns true. Returns
// false if the directory cannot be read, or `visit` stopped.
template <typename Visit>
bool ForEachEntry(const char* path, Visit visit) {
  struct Entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[1];
  };
  const int directory = static_cast<int>(RawOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory < 0) return false;
  alignas(8) char buffer[2048];
  bool go_on = true;
  for (long got = 0;
       go_on && (got = RawSyscall(SYS_getdents64, directory, buffer, sizeof(buffer))) != 0;) {
    if (got < 0) go_on = false;
    for (long at = 0; go_on && at < got;) {
      uint16_t size;
      memcpy(&size, buffer + at + offsetof(Entry, size), sizeof(size));
      const char* name = buffer + at + offsetof(Entry, name);
      if (name[0] != '.') go_on = visit(name);
      at += size;
    }
  }
  RawClose(directory);
  return go_on;
}

long ToNumber(const char* digits) {
  long value = 0;
  for (; *digits >= '0' && *digits <= '9'; ++digits) value = value * 10 + (*digits - '0');
  return value;
}

bool StartsWith(const char* text, const char* begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

// Returns true for devices that never access a program's memory asynchronously.
bool IsHarmlessDevice(const char* path) {
  static constexpr const char* kExact[] = {
      "null", "zero",    "full",        "random",          "urandom",
      "ptmx", "console", "userfaultfd", "cpu_dma_latency", "kmsg"};
  static constexpr const char* kBelow[] = {"tty", "pts/", "shm/", "mqueue/", "hugepages"};
  const char* name = path + strlen("/dev/");
  for (const char* harmless : kExact) {
    if (strcmp(name, harmless) == 0) return true;
  }
  for (const char* harmless : kBelow) {
    if (StartsWith(name, harmless)) return true;
  }
  return false;
}

bool HoldsPages(const char* target, int fd) {
  if (StartsWith(target, "/dev/")) return !IsHarmlessDevice(target);
  if (StartsWith(target, "anon_inode:")) {
    for (const char* kind : {"io_uring", "kvm", "vfio", "iommu", "infiniband", "uverbs"}) {
      if (strstr(target, kind) != nullptr) return true;
    }
    return false;
  }
  if (!StartsWith(target, "socket:")) return false;
  int domain = 0;
  socklen_t size = sizeof(domain);
  return RawSyscall(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
         domain == kXdp;
}

// Returns the address of a thread's robust list: the C library keeps such data at the upper end of
// the thread's stack.
uint64_t ThreadData(long thread) {
  uint64_t head = 0;
  size_t size = 0;
  return RawSyscall(SYS_get_robust_list, thread, &head, &size) == 0 ? head : 0;
}

// Returns true if a thread's stack may extend into [start, ...) of the area.
bool HoldsStack(const MappedArea& area, uint64_t start) {
  // Stacks, those of coroutines too, usually have an inaccessible page below.
  MappedArea below;
  if (area.start != 0 && FindMappedArea(area.start - 1, &below) == 0 && below.start < area.start &&
      !below.readable) {
    return true;
  }
  const auto inside = [&area](uint64_t address) {
    return address >= area.start && address < area.end;
  };
  const uint64_t own = ThreadData(0);
  if (inside(reinterpret_cast<uint64_t>(__builtin_frame_address(0))) &&
      !(inside(own) && own < start)) {
    return true;
  }
  bool found = false;
  const bool seen_all = ForEachEntry("/proc/self/task", [&](const char* name) {
    const uint64_t data = ThreadData(ToNumber(name));
    found = inside(data) && data >= start;
    return !found;
  });
  return found || !seen_all;
}

bool HasMemoryPolicy(uint64_t address) {
  int mode = 0;
  const long result = RawSyscall(SYS_get_mempolicy, &mode, nullptr, 0UL, address, kOfAddress);
  return result == 0 && mode != 0;  // MPOL_DEFAULT; an error: a kernel without policies
}

}  // namespace

RemapMode RemapModeOfProcess() {
  const char* choice = Setting("ROCEGW_REMAP");
  if (choice == nullptr || choice[0] == '\0' || strcmp(choice, "auto") == 0) {
    return RemapMode::kAuto;
  }
  if (strcmp(choice, "never") == 0) return RemapMode::kNever;
  if (strcmp(choice, "always") == 0) return RemapMode::kAlways;
  static int warned = 0;
  if (__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED) == 0) {
    Warn("ROCEGW_REMAP is '%s', not auto, always or never; taken as never", choice);
  }
  return RemapMode::kNever;
}

bool IsPlainMemory(uint64_t start, uint64_t end) {
  while (start < end) {
    MappedArea area;
    if (FindMappedArea(start, &area) != 0 || area.start > start) return false;
    if (area.shared || area.inode != 0 || area.named || area.executable || !area.readable ||
        !area.writable) {
      return false;
    }
    start = area.end;
  }
  return true;
}

uint32_t CheckMapping(uint64_t start, uint64_t end) {
  if (!IsPlainMemory(start, end)) return ROCEGW_KEPT_MAPPING;
  const auto own_errno = reinterpret_cast<uint64_t>(&errno);
  if (own_errno >= start && own_errno < end) return ROCEGW_KEPT_STACK;
  for (uint64_t at = start; at < end;) {
    MappedArea area;
    if (FindMappedArea(at, &area) != 0) return ROCEGW_KEPT_MAPPING;
    if (HoldsStack(area, at)) return ROCEGW_KEPT_STACK;
    if (HasMemoryPolicy(at)) return ROCEGW_KEPT_ADVISED;
    at = area.end;
  }
  if (!HasOrdinaryProperties(start, end)) return ROCEGW_KEPT_ADVISED;
  // A write beyond the limit raises a signal that ends the program.
  rlimit64 limit = {};
  if (RawSyscall(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0 ||
      limit.rlim_cur < end - start) {
    return ROCEGW_KEPT_FILE_LIMIT;
  }
  return 0;
}

bool MayHoldPages() {
  return !ForEachEntry("/proc/self/fd", [](const char* name) {
    char path[48] = "/proc/self/fd/";
    strncat(path, name, 20);
    char target[256];
    const long length = RawSyscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target) - 1);
    if (length < 0) return true;  // closed meanwhile
    target[length] = '\0';
    return !HoldsPages(target, static_cast<int>(ToNumber(name)));
  });
}

bool IsTooLargeFor(uint64_t length) {
  const uint64_t resident = ResidentBytes();
  return resident / kMostResidentPerByte > length;
}

}  // namespace rocegw::client
