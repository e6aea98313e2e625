// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

namespace rocegw::memory {
namespace {

Status SystemError(const char* what) {
  const int error = errno;
  return {error, std::string("remapped region: ") + what + ": " + std::strerror(error)};
}

}  // namespace

StatusOr<std::shared_ptr<Region>> Region::Create(uint64_t address, uint64_t length) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (length == 0 || length % page != 0 || address % page != 0 ||
      length > std::numeric_limits<uint64_t>::max() - address ||
      length > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return Status(EINVAL, "remapped region: not whole pages of an address space");
  }
  UniqueFd fd(::memfd_create("rocegw-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(length)) != 0) return SystemError("ftruncate");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return SystemError("sealing");
  }
  void* base =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return SystemError("mmap");
  // A core file of the daemon is no place for its clients' data.
  ::madvise(base, length, MADV_DONTDUMP);
  return std::shared_ptr<Region>(
      new Region(std::move(fd), static_cast<uint8_t*>(base), address, length));
}

Region::~Region() { ::munmap(base_, length_); }

uint8_t* Region::Find(uint64_t address, uint64_t length) const {
  if (address < address_) return nullptr;
  const uint64_t offset = address - address_;
  if (offset > length_ || length > length_ - offset) return nullptr;
  return base_ + offset;
}

}  // namespace rocegw::memory
