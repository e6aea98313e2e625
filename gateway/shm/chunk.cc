// SPDX-License-Identifier: Apache-2.0
#include "gateway/shm/chunk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rocegw::shm {
namespace {

Status SystemError(const char* what) {
  const int error = errno;
  return {error, std::string("shared memory: ") + what + ": " + std::strerror(error)};
}

}  // namespace

StatusOr<std::unique_ptr<Chunk>> Chunk::Create(uint64_t size, Writer writer) {
  UniqueFd fd(::memfd_create("rocegw-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return SystemError("ftruncate");
  void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapping == MAP_FAILED) return SystemError("mmap");
  std::unique_ptr<Chunk> chunk(
      new Chunk(std::move(fd), static_cast<uint8_t*>(mapping), size, writer));
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // After the mapping above: the seal forbids new writable mappings and leaves this one alone.
  if (writer == Writer::kDaemon) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(chunk->fd(), F_ADD_SEALS, seals) != 0) return SystemError("sealing");
  return chunk;
}

Chunk::~Chunk() { ::munmap(base_, size_); }

Status Chunk::Prefault() {
  if (Status there = Populate(0, size_); !there.ok()) return there;
  populated_ = true;
  // Older kernels than 5.14 do not know it: the pages are there all the same.
  (void)::madvise(base_, size_, MADV_POPULATE_WRITE);
  return OkStatus();
}

Status Chunk::Populate(uint64_t offset, uint64_t length) {
  if (populated_) return OkStatus();
  int result = 0;
  do {
    result = ::fallocate(fd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return OkStatus();
  return {ENOMEM, std::string("shared memory: fallocate: ") + std::strerror(errno)};
}

}  // namespace rocegw::shm
