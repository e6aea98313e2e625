// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/folder_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/fleet/announcement.h"

namespace rocegw::far {

StatusOr<FolderFile> ReadFolderFile(const std::string& path) {
  // A FIFO or a device does not make the call wait.
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return ErrnoStatus(path);
  struct stat state {};
  if (fstat(file.get(), &state) != 0) return ErrnoStatus(path);
  if (!S_ISREG(state.st_mode)) return Status(EINVAL, path + ": not a file");
  FolderFile read;
  read.changed_ns = int64_t{state.st_mtim.tv_sec} * 1000000000 + state.st_mtim.tv_nsec;
  read.text.resize(kMostText + 1);
  size_t bytes = 0;
  while (bytes < read.text.size()) {
    const ssize_t got = ::read(file.get(), read.text.data() + bytes, read.text.size() - bytes);
    if (got < 0) return ErrnoStatus(path);
    if (got == 0) break;
    bytes += static_cast<size_t>(got);
  }
  if (bytes > kMostText) return Status(EINVAL, path + ": too long");
  read.text.resize(bytes);
  return read;
}

Status ReplaceFolderFile(const std::string& path, std::string_view text) {
  const size_t name = path.rfind('/') + 1;
  const std::string other = path.substr(0, name) + "." + path.substr(name) + ".new";
  unlink(other.c_str());
  UniqueFd file(open(other.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file.valid()) return ErrnoStatus(other);
  // The process's umask must not keep the reader, another user, out.
  const bool written =
      fchmod(file.get(), 0644) == 0 &&
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || rename(other.c_str(), path.c_str()) != 0) {
    Status status = ErrnoStatus(path);
    unlink(other.c_str());
    return status;
  }
  return OkStatus();
}

}  // namespace rocegw::far
