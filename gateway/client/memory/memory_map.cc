// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/memory_map.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/own_descriptor.h"
#include "gateway/client/process/raw_syscall.h"

namespace rocegw::client {

namespace {

// Defined here because linux/fs.h has it only since 6.11.
struct ProcMapQuery {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
static_assert(sizeof(ProcMapQuery) == 104);
constexpr unsigned long kQueryRequest = _IOWR('f', 17, ProcMapQuery);
constexpr uint64_t kVmaReadable = 1;
constexpr uint64_t kVmaWritable = 2;
constexpr uint64_t kVmaExecutable = 4;
constexpr uint64_t kVmaShared = 8;
constexpr uint64_t kCoveringOrNext = 0x10;

// Descriptor of /proc/self/maps for queries, in one word: its number, and half of the identity that
// distinguishes its file from the program's. 0: none.
uint64_t g_maps = 0;
bool g_no_query = false;

uint64_t Pack(const OwnDescriptor& own) {
  const auto half = static_cast<uint32_t>(own.identity ^ own.identity >> 32);
  return uint64_t{static_cast<uint32_t>(own.number) + 1} << 32 | half;
}

int NumberOf(uint64_t packed) { return static_cast<int>(packed >> 32) - 1; }

int MapsDescriptor() {
  uint64_t known = __atomic_load_n(&g_maps, __ATOMIC_ACQUIRE);
  if (known != 0 && Pack(Own(NumberOf(known))) == known) return NumberOf(known);
  const int fd = MoveAside(static_cast<int>(RawOpen("/proc/self/maps", O_RDONLY | O_CLOEXEC)));
  if (fd < 0) return -1;
  if (__atomic_compare_exchange_n(&g_maps, &known, Pack(Own(fd)), false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_SEQ_CST)) {
    return fd;
  }
  RawClose(fd);
  return NumberOf(known);
}

// Returns -ENOTTY if this kernel has no such query.
int Query(uint64_t address, MappedArea* area) {
  const int maps = MapsDescriptor();
  if (maps < 0) return -ENOTTY;
  char name[64] = {};
  ProcMapQuery query = {};
  query.size = sizeof(query);
  query.query_flags = kCoveringOrNext;
  query.query_addr = address;
  query.vma_name_addr = reinterpret_cast<uint64_t>(name);
  query.vma_name_size = sizeof(name);
  long result = RawIoctl(maps, kQueryRequest, &query);
  if (result == -ENAMETOOLONG) {  // a file with a long path; the name is not needed
    query.vma_name_addr = 0;
    query.vma_name_size = 0;
    result = RawIoctl(maps, kQueryRequest, &query);
  }
  if (result < 0) return static_cast<int>(result);
  *area = {};
  area->start = query.vma_start;
  area->end = query.vma_end;
  area->offset = query.vma_offset;
  area->inode = query.inode;
  area->device_major = query.dev_major;
  area->device_minor = query.dev_minor;
  area->readable = (query.vma_flags & kVmaReadable) != 0;
  area->writable = (query.vma_flags & kVmaWritable) != 0;
  area->executable = (query.vma_flags & kVmaExecutable) != 0;
  area->shared = (query.vma_flags & kVmaShared) != 0;
  area->named = query.vma_name_size != 0 && name[0] == '[';
  return 0;
}

// Reader of a file's lines with a buffer on the stack.
class MapsText {
 public:
  explicit MapsText(const char* path)
      : fd_(static_cast<int>(RawOpen(path, O_RDONLY | O_CLOEXEC))) {}
  ~MapsText() {
    if (fd_ >= 0) RawClose(fd_);
  }
  MapsText(const MapsText&) = delete;
  MapsText& operator=(const MapsText&) = delete;

  bool IsOpen() const { return fd_ >= 0; }

  // Returns false at the end. A line that is longer than the buffer is cut.
  bool NextLine(char* line, size_t size) {
    size_t length = 0;
    for (;;) {
      if (position_ == filled_ && !Fill()) break;
      const char c = buffer_[position_++];
      if (c == '\n') {
        line[length] = '\0';
        return true;
      }
      if (length + 1 < size) line[length++] = c;
    }
    line[length] = '\0';
    return length != 0;
  }

 private:
  bool Fill() {
    if (fd_ < 0) return false;
    const long got = RawRead(fd_, buffer_, sizeof(buffer_));
    if (got <= 0) return false;
    position_ = 0;
    filled_ = static_cast<size_t>(got);
    return true;
  }

  int fd_;
  size_t position_ = 0;
  size_t filled_ = 0;
  char buffer_[4096];
};

// Parses a number in the given base and skips the character behind it.
uint64_t TakeNumber(const char** text, unsigned base) {
  uint64_t value = 0;
  for (;; ++*text) {
    const char c = **text;
    unsigned digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<unsigned>(c - '0');
    } else if (base == 16 && c >= 'a' && c <= 'f') {
      digit = static_cast<unsigned>(c - 'a') + 10;
    } else {
      break;
    }
    value = value * base + digit;
  }
  if (**text != '\0') ++*text;
  return value;
}

void ParseLine(const char* line, MappedArea* area) {
  *area = {};
  area->start = TakeNumber(&line, 16);
  area->end = TakeNumber(&line, 16);
  if (strnlen(line, 5) < 5) return;
  area->readable = line[0] == 'r';
  area->writable = line[1] == 'w';
  area->executable = line[2] == 'x';
  area->shared = line[3] == 's';
  line += 5;
  area->offset = TakeNumber(&line, 16);
  area->device_major = static_cast<uint32_t>(TakeNumber(&line, 16));
  area->device_minor = static_cast<uint32_t>(TakeNumber(&line, 16));
  area->inode = TakeNumber(&line, 10);
  while (*line == ' ') ++line;
  area->named = line[0] == '[';
}

// Checks the VmFlags of proc_pid_smaps(5). Flags that are not listed here are refused, including
// those of newer kernels.
bool AllOrdinary(const char* flags) {
  // Readable, writable, executable, and the right to become so; accounted; hints about the access
  // order; no swap space reserved; no huge pages (there are none on the other side); written since
  // the last soft-dirty reset; shared, which is checked elsewhere.
  static constexpr char kOrdinary[][3] = {"rd", "wr", "mr", "mw", "me", "ac", "sr",
                                          "rr", "nr", "nh", "sd", "sh", "ms"};
  for (;;) {
    while (*flags == ' ') ++flags;
    if (flags[0] == '\0' || flags[1] == '\0') return true;
    bool known = false;
    for (const char* flag : kOrdinary) {
      if (flags[0] == flag[0] && flags[1] == flag[1]) known = true;
    }
    if (!known || (flags[2] != ' ' && flags[2] != '\0')) return false;
    flags += 2;
  }
}

}  // namespace

int FindMappedAreaInText(uint64_t address, MappedArea* area) {
  MapsText text("/proc/self/maps");
  if (!text.IsOpen()) return ENOSYS;
  char line[256] = {};
  while (text.NextLine(line, sizeof(line))) {
    ParseLine(line, area);
    if (area->end > address) return 0;
  }
  return ENOENT;
}

int FindMappedArea(uint64_t address, MappedArea* area) {
  if (!__atomic_load_n(&g_no_query, __ATOMIC_RELAXED)) {
    const int result = Query(address, area);
    if (result == 0) return 0;
    if (result == -ENOENT) return ENOENT;
    __atomic_store_n(&g_no_query, true, __ATOMIC_RELAXED);
  }
  return FindMappedAreaInText(address, area);
}

int CheckMappedByPages(uint64_t address, uint64_t length) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint8_t resident[512];
  const uint64_t end = address + length;
  for (uint64_t at = address & ~(page - 1); at < end;) {
    const uint64_t pages = (end - at + page - 1) / page;
    const uint64_t asked = (pages < sizeof(resident) ? pages : sizeof(resident)) * page;
    if (RawSyscall(SYS_mincore, at, asked, resident) != 0) return EFAULT;
    at += asked;
  }
  return 0;
}

int CheckMapped(uint64_t address, uint64_t length, bool need_write) {
  if (address + length < address) return EFAULT;
  const uint64_t end = address + length;
  while (address < end) {
    MappedArea area;
    const int error = FindMappedArea(address, &area);
    if (error == ENOSYS) return CheckMappedByPages(address, end - address);
    if (error != 0 || area.start > address) return EFAULT;
    if (!area.readable || (need_write && !area.writable)) return EFAULT;
    address = area.end;
  }
  return 0;
}

bool HasOrdinaryProperties(uint64_t start, uint64_t end) {
  MapsText text("/proc/self/smaps");
  char line[256] = {};
  bool inside = false;
  uint64_t seen_to = start;
  uint64_t area_end = 0;
  while (text.NextLine(line, sizeof(line))) {
    // Headers begin with an address in lower case, properties with a capital.
    const bool is_header = (line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f');
    if (is_header) {
      MappedArea area;
      ParseLine(line, &area);
      if (area.start >= end) break;
      inside = area.end > start;
      area_end = area.end;
      continue;
    }
    if (!inside) continue;
    if (strncmp(line, "ProtectionKey:", 14) == 0) {
      const char* number = line + 14;
      while (*number == ' ') ++number;
      if (*number != '0') return false;
    } else if (strncmp(line, "VmFlags:", 8) == 0) {
      if (!AllOrdinary(line + 8)) return false;
      seen_to = area_end;
    }
  }
  return seen_to >= end;
}

uint64_t ResidentBytes() {
  MapsText text("/proc/self/statm");
  char line[128] = {};
  if (!text.NextLine(line, sizeof(line))) return 0;
  const char* rest = line;
  (void)TakeNumber(&rest, 10);
  return TakeNumber(&rest, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

void ForgetMemoryMap() {
  const uint64_t known = __atomic_exchange_n(&g_maps, 0, __ATOMIC_SEQ_CST);
  if (known != 0 && Pack(Own(NumberOf(known))) == known) RawClose(NumberOf(known));
}

}  // namespace rocegw::client
