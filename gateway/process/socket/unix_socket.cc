// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/socket/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace rocegw::process {

std::string ExplainSocket(const SocketWords& words, const std::string& path, const char* what,
                          int error) {
  std::string text = words.name + (" " + path) + ": " + what + ": " + std::strerror(error);
  if (error == EACCES || error == EPERM || error == EROFS) {
    text += std::string("; run as a user that may write there, or set ") + words.keys;
  } else if (error == ENOENT) {
    text += std::string("; create the directory, or set ") + words.keys;
  }
  return text;
}

Status ClaimSocket(const SocketWords& words, const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path)
    return {ENAMETOOLONG, ExplainSocket(words, path, "bind", ENAMETOOLONG)};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {errno, ExplainSocket(words, path, "socket", errno)};
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  Status status;
  struct stat info {};
  if (connect(fd, place, sizeof address) == 0) {
    status = {EADDRINUSE, words.name + (" " + path) +
                              ": another process serves it; stop that one, or set " + words.keys};
  } else if (lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    status = {EEXIST, words.name + (" " + path) +
                          ": there is a file that is not a socket; remove it, or set " +
                          words.keys};
  } else if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    status = {errno, ExplainSocket(words, path, "remove the old one", errno)};
  } else if (bind(fd, place, sizeof address) != 0) {
    status = {errno, ExplainSocket(words, path, "bind", errno)};
  } else {
    unlink(path.c_str());
  }
  close(fd);
  return status;
}

}  // namespace rocegw::process
