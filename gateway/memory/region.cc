// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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

// Bytes behind the region, for mappings that grow. Untouched pages cost nothing.
constexpr uint64_t kGrowth = uint64_t{1} << 40;

bool IsWholePages(uint64_t address, uint64_t length) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return length != 0 && length % page == 0 && address % page == 0 &&
         length <= std::numeric_limits<uint64_t>::max() - address &&
         length <= static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - kGrowth;
}

bool AccountsStrictly() {
  const UniqueFd file(::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC));
  char mode = '0';
  return file.valid() && ::read(file.get(), &mode, 1) == 1 && mode == '2';
}

}  // namespace

StatusOr<std::shared_ptr<Region>> Region::Create(uint64_t address, uint64_t length) {
  if (!IsWholePages(address, length)) {
    return Status(EINVAL, "remapped region: not whole pages of an address space");
  }
  if (AccountsStrictly()) {
    return Status(ENOMEM, "remapped region: vm.overcommit_memory is 2 (strict accounting)");
  }
  UniqueFd fd(::memfd_create("rocegw-region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError("memfd_create");
  // Without the surplus if a limit on file sizes is lower: exceeding the limit raises a signal.
  rlimit limit{};
  const bool roomy = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur >= length + kGrowth;
  if (::ftruncate(fd.get(), static_cast<off_t>(roomy ? length + kGrowth : length)) != 0) {
    return SystemError("ftruncate");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return SystemError("sealing");
  }
  return Map(std::move(fd), address, length);
}

StatusOr<std::shared_ptr<Region>> Region::Import(UniqueFd fd, const DmaBuf& buffer,
                                                 uint64_t address, uint64_t length) {
  if (!KeepsPages(buffer.exporter)) {
    return Status(EOPNOTSUPP, "dma-buf of " + buffer.exporter + ": its pages may vanish");
  }
  if (!IsWholePages(address, length) || length > buffer.length) {
    return Status(EINVAL, "dma-buf: not whole pages of an address space, or beyond its end");
  }
  return Map(std::move(fd), address, length, buffer.exporter);
}

StatusOr<std::shared_ptr<Region>> Region::Adopt(UniqueFd fd, uint64_t address, uint64_t length) {
  constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat file {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 && CheckDmaBuf(fd.get()).ok()) {
    auto buffer = InspectDmaBuf(fd.get());
    if (buffer.ok()) return Import(std::move(fd), *buffer, address, length);
  }
  const bool fits = seals >= 0 && (seals & kFixed) == kFixed && ::fstat(fd.get(), &file) == 0 &&
                    length != 0 && length <= static_cast<uint64_t>(file.st_size) &&
                    length <= std::numeric_limits<uint64_t>::max() - address;
  if (!fits) return Status(EPROTO, "remapped region: not memory of that size");
  return Map(std::move(fd), address, length);
}

StatusOr<std::shared_ptr<Region>> Region::Map(UniqueFd fd, uint64_t address, uint64_t length,
                                              std::string exporter) {
  void* base =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return SystemError("mmap");
  // Client data must not get into a core file of the daemon.
  ::madvise(base, length, MADV_DONTDUMP);
  return std::shared_ptr<Region>(
      new Region(std::move(fd), static_cast<uint8_t*>(base), address, length, std::move(exporter)));
}

Region::~Region() { ::munmap(base_, length_); }

uint8_t* Region::Find(uint64_t address, uint64_t length) const {
  if (address < address_) return nullptr;
  const uint64_t offset = address - address_;
  if (offset > length_ || length > length_ - offset) return nullptr;
  return base_ + offset;
}

}  // namespace rocegw::memory
