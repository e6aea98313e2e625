// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/instance_lock.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {
namespace {

struct AbstractName {
  sockaddr_un address{};
  socklen_t length = 0;
};

AbstractName LockName(uint16_t udp_port) {
  AbstractName name;
  name.address.sun_family = AF_UNIX;
  // A zero first byte makes the name abstract.
  const int n = std::snprintf(name.address.sun_path + 1, sizeof name.address.sun_path - 1,
                              "rocegw-udp-%u", unsigned{udp_port});
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  return name;
}

// Returns text such as "process 17 (rocegwd)", as far as the kernel reports it.
std::string DescribeHolder(const AbstractName& name) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (!probe.valid() ||
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 ||
      credentials.pid <= 0) {
    return "another process";
  }
  std::string text = "process " + std::to_string(credentials.pid);
  const std::string path = "/proc/" + std::to_string(credentials.pid) + "/comm";
  if (FILE* file = std::fopen(path.c_str(), "re")) {
    char command[32] = "";
    if (std::fgets(command, sizeof command, file) != nullptr) {
      command[std::strcspn(command, "\n")] = '\0';
      text += std::string(" (") + command + ")";
    }
    (void)std::fclose(file);
  }
  return text;
}

}  // namespace

StatusOr<UniqueFd> LockInstance(uint16_t udp_port) {
  const AbstractName name = LockName(udp_port);
  UniqueFd lock(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!lock.valid()) {
    return Status(errno, std::string("cannot make the instance lock socket: ") + strerror(errno));
  }
  if (bind(lock.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
    const int error = errno;
    if (error != EADDRINUSE) {
      return Status(error, std::string("cannot bind the instance lock: ") + strerror(error));
    }
    return Status(error, DescribeHolder(name) + " already serves UDP port " +
                             std::to_string(udp_port) +
                             " in this network namespace; stop it, or start this gateway in "
                             "another network namespace");
  }
  if (listen(lock.get(), 1) != 0) {
    return Status(errno, std::string("cannot listen on the instance lock: ") + strerror(errno));
  }
  return lock;
}

StatusOr<std::shared_ptr<void>> SilenceKernel(uint16_t udp_port) {
  struct Silence {
    UniqueFd lock;
    UniqueFd socket;
  };
  // Locks by network namespace and port; an entry whose ports are closed is created again.
  static std::mutex mutex;
  static std::map<std::pair<ino_t, uint16_t>, std::weak_ptr<Silence>> silences;
  struct stat space {};
  if (stat("/proc/thread-self/ns/net", &space) != 0) {
    return Status(errno, std::string("cannot tell the network namespace: ") + strerror(errno));
  }
  const std::lock_guard guard(mutex);
  std::weak_ptr<Silence>& known = silences[{space.st_ino, udp_port}];
  if (auto silence = known.lock()) return std::shared_ptr<void>(std::move(silence));
  auto lock = LockInstance(udp_port);
  if (!lock.ok()) return lock.status();
  auto socket = OpenSilentSocket(udp_port);
  if (!socket.ok()) return socket.status();
  auto silence = std::make_shared<Silence>(Silence{std::move(*lock), std::move(*socket)});
  known = silence;
  return std::shared_ptr<void>(std::move(silence));
}

}  // namespace rocegw::port
