// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>

#include "gateway/base/unique_fd.h"

namespace rocegw::daemon {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr size_t kDigits = 32;

Status Wrong(int error, const std::string& path, const std::string& text) {
  return {error, "key file " + path + ": " + text};
}

Status CheckRights(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Wrong(errno, path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return Wrong(EINVAL, path, "is not a regular file");
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return Wrong(EPERM, path, "must belong to root or to the user of rocegwd");
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return Wrong(EPERM, path, "others than its owner have rights to it; chmod 0600 " + path);
  return OkStatus();
}

bool ReadKey(const std::string& line, SecretKey& key) {
  if (line.size() != kDigits) return false;
  for (size_t half = 0; half < key.size(); ++half) {
    const char* const from = line.data() + half * kDigits / 2;
    const char* const end = from + kDigits / 2;
    const auto parsed = std::from_chars(from, end, key[half], 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) return false;
  }
  return key != SecretKey{};
}

}  // namespace

StatusOr<FleetKeys> ReadKeyFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return Wrong(errno, path, std::strerror(errno));
  if (Status rights = CheckRights(file.get(), path); !rights.ok()) return rights;
  std::string text(kMostBytes + 1, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) return Wrong(errno, path, std::strerror(errno));
  if (static_cast<size_t>(got) > kMostBytes) return Wrong(EFBIG, path, "is longer than 4096 bytes");
  text.resize(static_cast<size_t>(got));

  FleetKeys keys;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const std::string where = "line " + std::to_string(number) + ": ";
    if (keys.count == FleetKeys::kMost)
      return Wrong(EINVAL, path, where + "at most three keys are possible");
    if (!ReadKey(line, keys.keys[keys.count]))
      return Wrong(
          EINVAL, path,
          where + "must be 32 hexadecimal digits that are not all 0 (openssl rand -hex 16)");
    ++keys.count;
  }
  if (keys.count == 0) return Wrong(EINVAL, path, "has no key (openssl rand -hex 16)");
  return keys;
}

bool KeyFileWatch::HasChanged(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  // The time of the change, not that of the modification, which copies keep.
  const Stamp now{info.st_dev, info.st_ino, info.st_size,
                  info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec};
  if (now == seen_) return false;
  seen_ = now;
  return true;
}

}  // namespace rocegw::daemon
