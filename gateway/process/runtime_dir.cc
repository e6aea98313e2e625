// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/runtime_dir.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace rocegw::process {
namespace {

bool ParseId(const std::string& text, uint32_t& id) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, id);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

std::string Holder(int fd) {
  char text[32];
  const ssize_t n = pread(fd, text, sizeof text - 1, 0);
  if (n <= 0) return "another process";
  text[n] = '\0';
  return "process " + std::string(text, std::strcspn(text, "\n"));
}

}  // namespace

Status RuntimeDir::Claim(const std::string& path) {
  const auto explain = [&](const char* what, int error) {
    std::string text = key_ + " " + path + ": " + what + ": " + std::strerror(error);
    if (error == EACCES || error == EPERM || error == EROFS) {
      text += "; run as root, or set " + key_ + " to a directory that this user may write";
    }
    return Status(error, text);
  };
  std::error_code error;
  const bool is_new = !std::filesystem::exists(path, error);
  std::filesystem::create_directories(path, error);
  if (error) return explain("cannot be made", error.value());
  if (is_new && chmod(path.c_str(), mode_) != 0) return explain("mode cannot be set", errno);
  const std::string lock = path + "/lock";
  fd_ = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) return explain("cannot be used", errno);
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    Status status = why == EWOULDBLOCK
                        ? Status(EADDRINUSE, key_ + " " + path + " belongs to " + Holder(fd_) +
                                                 "; stop that " + program_ + ", or set " + key_)
                        : explain("cannot be locked", why);
    close(fd_);
    fd_ = -1;
    return status;
  }
  path_ = path;
  Status named = NameHolder();
  if (!named.ok()) Release();
  return named;
}

Status RuntimeDir::Inherit(const std::string& path, UniqueFd lock) {
  struct stat here {};
  struct stat held {};
  const std::string file = path + "/lock";
  if (stat(file.c_str(), &here) != 0 || fstat(lock.get(), &held) != 0 ||
      here.st_ino != held.st_ino || here.st_dev != held.st_dev) {
    return {ESTALE, key_ + " " + path + ": the inherited lock is not that of its file"};
  }
  path_ = path;
  fd_ = lock.Release();
  return OkStatus();
}

Status RuntimeDir::NameHolder() {
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd_, 0) == 0 &&
      pwrite(fd_, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size()))
    return OkStatus();
  const int error = errno;
  return {error, key_ + " " + path_ + ": cannot be written: " + std::strerror(error)};
}

void RuntimeDir::Offer(OfferedFds& fds) const { fds.push_back({FdKind::kRuntimeLock, path_, fd_}); }

void RuntimeDir::Release() {
  // The file stays: removing it would let a second daemon lock a new file while a third locks the
  // old one.
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

StatusOr<Owner> FindOwner(const std::string& owner) {
  Owner found;
  const size_t colon = owner.find(':');
  const std::string user = owner.substr(0, colon);
  const std::string group = colon == std::string::npos ? "" : owner.substr(colon + 1);
  if (!user.empty() && !ParseId(user, found.uid)) {
    const passwd* entry = getpwnam(user.c_str());
    if (entry == nullptr) return Status(ENOENT, "owner: there is no user '" + user + "'");
    found.uid = entry->pw_uid;
  }
  if (!group.empty() && !ParseId(group, found.gid)) {
    const struct group* entry = getgrnam(group.c_str());
    if (entry == nullptr) return Status(ENOENT, "owner: there is no group '" + group + "'");
    found.gid = entry->gr_gid;
  }
  return found;
}

}  // namespace rocegw::process
