// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/foreign_memory.h"

#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/interop/rdma_check/arena.h"
#include "tests/interop/rdma_check/device_memory.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

alignas(4096) uint8_t g_data[kForeignLength] = {1};

struct Mapping {
  void* start = MAP_FAILED;
  size_t length = 0;
  ~Mapping() {
    if (start != MAP_FAILED) munmap(start, length);
  }
};

struct File {
  int fd = -1;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

void Fill(uint64_t seed, int fd) {
  std::vector<uint8_t> bytes(kForeignLength);
  FillPattern(seed, 0, bytes.data(), bytes.size());
  CheckErrno(pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
             "pwrite");
}

// A file without a name.
int TemporaryFile() {
  char path[] = "/tmp/rdma_check.XXXXXX";
  const int fd = mkstemp(path);
  CheckErrno(fd >= 0, "mkstemp");
  unlink(path);
  return fd;
}

void WithFile(int fd, int protection, int flags, uint64_t seed,
              const std::function<void(ForeignMemory&)>& use) {
  const File file{fd};
  Fill(seed, fd);
  const Mapping mapping{mmap(nullptr, kForeignLength, protection, flags, fd, 0), kForeignLength};
  CheckErrno(mapping.start != MAP_FAILED, "mmap of a file");
  ForeignMemory memory{static_cast<uint8_t*>(mapping.start), kForeignLength,
                       [fd](size_t offset, uint8_t* out, size_t length) {
                         CheckErrno(pread(fd, out, length, static_cast<off_t>(offset)) ==
                                        static_cast<ssize_t>(length),
                                    "pread");
                       }};
  use(memory);
}

void Use(uint8_t* start, uint64_t seed, const std::function<void(ForeignMemory&)>& use) {
  FillPattern(seed, 0, start, kForeignLength);
  ForeignMemory memory{start, kForeignLength, nullptr};
  use(memory);
}

void WithAnonymous(int flags, size_t length, uint64_t seed,
                   const std::function<void(ForeignMemory&)>& use) {
  const Mapping mapping{mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0),
                        length};
  CheckErrno(mapping.start != MAP_FAILED, "mmap");
  Use(static_cast<uint8_t*>(mapping.start), seed, use);
}

void WithSystemV(uint64_t seed, const std::function<void(ForeignMemory&)>& use) {
  const int id = shmget(IPC_PRIVATE, kForeignLength, 0600);
  CheckErrno(id >= 0, "shmget");
  void* const start = shmat(id, nullptr, 0);
  shmctl(id, IPC_RMID, nullptr);
  CheckErrno(start != reinterpret_cast<void*>(-1), "shmat");
  const std::unique_ptr<void, int (*)(const void*)> attached(start, &shmdt);
  Use(static_cast<uint8_t*>(start), seed, use);
}

void WithStack(uint64_t seed, const std::function<void(ForeignMemory&)>& use) {
  uint8_t bytes[kForeignLength];
  Use(bytes, seed, use);
}

}  // namespace

const char* Name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kShared:
      return "shared";
    case MemoryKind::kSharedFile:
      return "shared_file";
    case MemoryKind::kPrivateFile:
      return "private_file";
    case MemoryKind::kReadOnlyFile:
      return "read_only_file";
    case MemoryKind::kMemfd:
      return "memfd";
    case MemoryKind::kSystemV:
      return "system_v";
    case MemoryKind::kData:
      return "data";
    case MemoryKind::kHeap:
      return "heap";
    case MemoryKind::kStack:
      return "stack";
    case MemoryKind::kHugePages:
      return "huge_pages";
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kDeviceShared:
      return "device_shared";
    case MemoryKind::kDeviceHip:
      return "device_hip";
  }
  return "?";
}

void WithMemory(MemoryKind kind, uint64_t seed, const std::function<void(ForeignMemory&)>& use) {
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  switch (kind) {
    case MemoryKind::kShared:
      return WithAnonymous(MAP_SHARED, kForeignLength, seed, use);
    case MemoryKind::kSharedFile:
      return WithFile(TemporaryFile(), kReadWrite, MAP_SHARED, seed, use);
    case MemoryKind::kPrivateFile:
      return WithFile(TemporaryFile(), kReadWrite, MAP_PRIVATE, seed, use);
    case MemoryKind::kReadOnlyFile:
      return WithFile(TemporaryFile(), PROT_READ, MAP_PRIVATE, seed, use);
    case MemoryKind::kMemfd:
      return WithFile(memfd_create("rdma_check", MFD_CLOEXEC), kReadWrite, MAP_SHARED, seed, use);
    case MemoryKind::kSystemV:
      return WithSystemV(seed, use);
    case MemoryKind::kData:
      return Use(g_data, seed, use);
    case MemoryKind::kHeap: {
      // Not at the start of a page, beside what else the allocator has.
      const std::vector<uint8_t> before(100);
      std::vector<uint8_t> bytes(kForeignLength);
      return Use(bytes.data(), seed, use);
    }
    case MemoryKind::kStack:
      return WithStack(seed, use);
    case MemoryKind::kHugePages:
      return WithAnonymous(MAP_PRIVATE | MAP_HUGETLB, kHugePage, seed, use);
    case MemoryKind::kDevice:
    case MemoryKind::kDeviceShared:
    case MemoryKind::kDeviceHip:
      return WithDevice(kind, seed, use);
  }
}

}  // namespace rocegw::interop
