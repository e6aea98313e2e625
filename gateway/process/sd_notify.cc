// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/sd_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace rocegw::process {

ServiceManager ServiceManager::FromEnvironment() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  ServiceManager manager(socket == nullptr ? "" : socket);
  unsetenv("NOTIFY_SOCKET");
  return manager;
}

void ServiceManager::Ready(std::string_view status) const {
  Send("READY=1\nSTATUS=" + std::string(status));
}

void ServiceManager::Reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  Send("RELOADING=1\nMONOTONIC_USEC=" +
       std::to_string(int64_t{now.tv_sec} * 1000000 + now.tv_nsec / 1000));
}

void ServiceManager::Stopping(std::string_view status) const {
  Send("STOPPING=1\nSTATUS=" + std::string(status));
}

void ServiceManager::Status(std::string_view status) const {
  Send("STATUS=" + std::string(status));
}

void ServiceManager::MainProcess(pid_t pid) const { Send("MAINPID=" + std::to_string(pid)); }

void ServiceManager::Send(const std::string& message) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  (void)sendto(fd, message.data(), message.size(), MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), length);
  close(fd);
}

}  // namespace rocegw::process
