// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/instance_lock.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

struct Holder {
  std::string text = "another process";  // such as "process 17 (rocegwd)", if the kernel reports it
  bool same_user = false;
};

Holder FindHolder(const AbstractName& name) {
  Holder holder;
  // Non-blocking: nobody needs to accept.
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (!probe.valid()) return holder;
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
      getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return holder;
  }
  holder.same_user = credentials.uid == geteuid();
  if (credentials.pid <= 0) return holder;
  holder.text = "process " + std::to_string(credentials.pid);
  const std::string path = "/proc/" + std::to_string(credentials.pid) + "/comm";
  if (FILE* file = std::fopen(path.c_str(), "re")) {
    char command[32] = "";
    if (std::fgets(command, sizeof command, file) != nullptr) {
      command[std::strcspn(command, "\n")] = '\0';
      holder.text += std::string(" (") + command + ")";
    }
    (void)std::fclose(file);
  }
  holder.text += " of user " + std::to_string(credentials.uid);
  return holder;
}

}  // namespace

StatusOr<InstanceLock> LockInstance(uint16_t udp_port) {
  const AbstractName name = LockName(udp_port);
  InstanceLock lock{UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), {}};
  const int fd = lock.fd.get();
  if (!lock.fd.valid()) {
    return Status(errno, std::string("cannot make the instance lock socket: ") + strerror(errno));
  }
  if (bind(fd, reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
    const int error = errno;
    if (error != EADDRINUSE) {
      return Status(error, std::string("cannot bind the instance lock: ") + strerror(error));
    }
    Holder holder = FindHolder(name);
    if (!holder.same_user) {
      // The descriptor locks nothing; it goes to a successor, which asks for no lock then.
      lock.squatter = std::move(holder.text);
      return lock;
    }
    return Status(error, holder.text + " already serves UDP port " + std::to_string(udp_port) +
                             " in this network namespace; stop it, or start this gateway in "
                             "another network namespace");
  }
  if (listen(fd, 1) != 0) {
    return Status(errno, std::string("cannot listen on the instance lock: ") + strerror(errno));
  }
  return lock;
}

Status IsPortFree(uint16_t udp_port) { return OpenSilentSocket(udp_port).status(); }

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
  auto silence = std::make_shared<Silence>(Silence{std::move(lock->fd), std::move(*socket)});
  known = silence;
  return std::shared_ptr<void>(std::move(silence));
}

}  // namespace rocegw::port
