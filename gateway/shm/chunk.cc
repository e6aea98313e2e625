// SPDX-License-Identifier: Apache-2.0
#include "gateway/shm/chunk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace rocegw::shm {
namespace {

// Pages are allocated in granules of this size: one system call for some tens of queues.
constexpr uint64_t kGranule = 65536;

Status SystemError(const char* what) {
  const int error = errno;
  return {error, std::string("shared memory: ") + what + ": " + std::strerror(error)};
}

}  // namespace

StatusOr<std::unique_ptr<Chunk>> Chunk::Create(uint64_t size, Writer writer, Sealing sealing) {
  UniqueFd fd(::memfd_create("rocegw-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return SystemError("ftruncate");
  void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) return SystemError("mmap");
  std::unique_ptr<Chunk> chunk(
      new Chunk(std::move(fd), static_cast<uint8_t*>(mapping), size, writer));
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // After the mapping above: the seal forbids new writable mappings and leaves existing ones alone.
  if (writer == Writer::kDaemon && sealing == Sealing::kForever) seals |= F_SEAL_FUTURE_WRITE;
  if (writer == Writer::kDaemon && sealing == Sealing::kForSuccessor) {
    const std::string path = "/proc/self/fd/" + std::to_string(chunk->fd());
    chunk->for_client_.Reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!chunk->for_client_.valid()) return SystemError("opening it for reading");
    if (::fchmod(chunk->fd(), S_IRUSR) != 0) return SystemError("fchmod");
  }
  if (::fcntl(chunk->fd(), F_ADD_SEALS, seals) != 0) return SystemError("sealing");
  return chunk;
}

StatusOr<std::unique_ptr<Chunk>> Chunk::Adopt(UniqueFd fd, uint64_t size, Writer writer) {
  constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat file {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  const bool fixed = seals >= 0 && (seals & kFixed) == kFixed;
  if (!fixed || ::fstat(fd.get(), &file) != 0 || static_cast<uint64_t>(file.st_size) != size)
    return Status(EPROTO, "shared memory: not a chunk of that size");
  void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) return SystemError("mmap");
  return std::unique_ptr<Chunk>(
      new Chunk(std::move(fd), static_cast<uint8_t*>(mapping), size, writer));
}

Chunk::~Chunk() { ::munmap(base_, size_); }

Status Chunk::Prefault() {
  if (Status there = Populate(0, size_); !there.ok()) return there;
  // Kernels before 5.14 refuse this; the pages are allocated anyway.
  (void)::madvise(base_, size_, MADV_POPULATE_WRITE);
  return OkStatus();
}

void Chunk::MapPages(uint64_t length) {
  const uint64_t pages = std::min((length + kGranule - 1) / kGranule * kGranule, size_);
  // Kernels before 5.14 refuse this; the pages are then mapped by the first access.
  if (pages != 0) (void)::madvise(base_, pages, MADV_POPULATE_WRITE);
}

Status Chunk::Populate(uint64_t offset, uint64_t length) {
  if (length == 0) return OkStatus();
  uint64_t first = offset / kGranule;
  uint64_t end = (offset + length + kGranule - 1) / kGranule;
  populated_.resize((size_ + kGranule - 1) / kGranule);
  while (first != end && populated_[first]) ++first;
  if (first == end) return OkStatus();
  while (populated_[end - 1]) --end;
  const uint64_t from = first * kGranule;
  const uint64_t bytes = std::min(end * kGranule, size_) - from;
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, static_cast<off_t>(from), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0)
    return {ENOMEM, std::string("shared memory: fallocate: ") + std::strerror(errno)};
  std::fill(populated_.begin() + static_cast<ptrdiff_t>(first),
            populated_.begin() + static_cast<ptrdiff_t>(end), true);
  return OkStatus();
}

}  // namespace rocegw::shm
