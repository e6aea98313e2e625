// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/state_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "gateway/base/unique_fd.h"

namespace rocegw::apply {
namespace {

// First line of the file; the message follows. The number counts incompatible changes of the
// format.
constexpr std::string_view kHeader = "rocegw configuration 1\n";

Status Failed(const std::string& path, const char* what) {
  const int error = errno;
  return {error, "state file " + path + ": " + what + ": " + std::strerror(error)};
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

Status WriteStateFile(const std::string& path, const gateway::v1::GetConfigResponse& state) {
  const std::string beside = path + ".new";
  const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.valid()) return Failed(path, "create");
  if (!WriteAll(file.get(), std::string(kHeader) + state.SerializeAsString()) ||
      ::fsync(file.get()) != 0)
    return Failed(path, "write");
  if (::rename(beside.c_str(), path.c_str()) != 0) return Failed(path, "rename");
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  const UniqueFd directory(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0)
    return Failed(path, "sync its directory");
  return OkStatus();
}

StatusOr<bool> ReadStateFile(const std::string& path, gateway::v1::GetConfigResponse& state) {
  if (path.empty()) return false;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) {
    if (errno == ENOENT) return false;
    return Failed(path, "open");
  }
  std::string bytes;
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(path, "read");
    if (n == 0) break;
    bytes.append(buffer, static_cast<size_t>(n));
  }
  if (!bytes.starts_with(kHeader) || !state.ParseFromString(bytes.substr(kHeader.size())) ||
      state.source().empty()) {
    state.Clear();
    return Status(EBADMSG, "state file " + path +
                               ": not one of this version, or damaged; remove it, the agent will "
                               "bring the configuration again");
  }
  return true;
}

}  // namespace rocegw::apply
