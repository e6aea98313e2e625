// SPDX-License-Identifier: Apache-2.0
#include "gateway/disk/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "gateway/base/unique_fd.h"

namespace rocegw {
namespace {

Status Explain(const std::string& path, const char* what, int error) {
  return {error, path + ": " + what + ": " + std::strerror(error)};
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t n = write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Explain(path, "cannot be written", errno);
    content.remove_prefix(static_cast<size_t>(n));
  }
  if (fsync(fd) != 0) return Explain(path, "cannot be written to the disk", errno);
  return OkStatus();
}

}  // namespace

Status WriteDurably(const std::string& path, std::string_view content, mode_t mode) {
  const std::string fresh = path + ".new";
  // Removes the file of an interrupted write.
  unlink(fresh.c_str());
  const UniqueFd fd(
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd.valid()) return Explain(fresh, "cannot be made", errno);
  // The process's umask must not change the mode.
  if (fchmod(fd.get(), mode) != 0) return Explain(fresh, "mode cannot be set", errno);
  if (Status status = WriteAll(fd.get(), content, fresh); !status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return Explain(path, "cannot be replaced", errno);
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || fsync(folder.get()) != 0) {
    return Explain(directory, "cannot be written to the disk", errno);
  }
  return OkStatus();
}

StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Explain(path, "cannot be read", errno);
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Explain(path, "cannot be read", errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > most) return Explain(path, "cannot be read", EFBIG);
  }
}

}  // namespace rocegw
