// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/state_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rocegw::take_over {
namespace {

constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

Status SystemError(const char* what) {
  const int error = errno;
  return {error, std::string("state file: ") + what + ": " + std::strerror(error)};
}

}  // namespace

StatusOr<UniqueFd> MakeStateFile(std::span<const uint8_t> bytes) {
  UniqueFd fd(::memfd_create("rocegw-state", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return SystemError("memfd_create");
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t wrote = ::write(fd.get(), bytes.data() + at, bytes.size() - at);
    if (wrote < 0 && errno != EINTR) return SystemError("write");
    if (wrote > 0) at += static_cast<size_t>(wrote);
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kFixed | F_SEAL_SEAL) != 0) return SystemError("sealing");
  return fd;
}

StatusOr<StateFile> StateFile::Map(const UniqueFd& fd, size_t most) {
  struct stat file {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kFixed) != kFixed || ::fstat(fd.get(), &file) != 0)
    return Status(EPROTO, "state file: it can be changed");
  const auto length = static_cast<size_t>(file.st_size);
  if (length > most) return Status(EPROTO, "state file: too long");
  if (length == 0) return StateFile();
  void* const mapping = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd.get(), 0);
  if (mapping == MAP_FAILED) return SystemError("mmap");
  return StateFile({static_cast<const uint8_t*>(mapping), length});
}

StateFile::~StateFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace rocegw::take_over
