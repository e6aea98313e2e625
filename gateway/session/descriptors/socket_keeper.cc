// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/descriptors/socket_keeper.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "gateway/base/descriptor_message.h"
#include "gateway/session/descriptors/threadless_process.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/socket_cookie.h"

namespace rocegw::session {
namespace {

constexpr int kDaemonEndsWithinMs = 500;

// With a descriptor: keep it. Without: release the socket.
struct Order {
  uint64_t cookie = 0;  // the socket's (SO_COOKIE)
};

// Returns a descriptor of the daemon's process. It is the one that made the socket.
UniqueFd DaemonOf(const UniqueFd& orders) {
  ucred daemon{};
  socklen_t size = sizeof daemon;
  if (::getsockopt(orders.get(), SOL_SOCKET, SO_PEERCRED, &daemon, &size) != 0) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, daemon.pid, 0)));
}

void Serve(UniqueFd orders) {
  const UniqueFd daemon = DaemonOf(orders);
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &files);
  }
  std::unordered_map<uint64_t, UniqueFd> kept;
  while (true) {
    Order order;
    DescriptorMessage message = ReceiveDescriptors(orders.get(), BytesOf(order), 0);
    if (message.length != sizeof order) break;
    if (message.fds.empty()) {
      // A message that came without its descriptor, for lack of numbers, has nothing to release.
      kept.erase(order.cookie);
    } else {
      kept[order.cookie] = std::move(message.fds.front());
    }
  }
  // The daemon closes the orders' socket before others. It may go on as another program (execve).
  pollfd end{daemon.get(), POLLIN, 0};
  if (daemon.valid()) (void)::poll(&end, 1, kDaemonEndsWithinMs);
  // No call closes the sockets: the kernel first ends all connections of a process that ends, and
  // then releases what is in them, which may wait.
  ::_exit(0);
}

}  // namespace

StatusOr<UniqueFd> SocketKeeper::Start() { return StartThreadlessProcess("rocegw-sockets", Serve); }

void SocketKeeper::Keep(int socket) {
  SendReleases();
  const Order order{CookieOf(socket).value_or(0)};
  (void)SendDescriptors(orders_.get(), BytesOf(order), std::array{socket}, MSG_DONTWAIT);
}

void SocketKeeper::Release(int socket) {
  {
    const std::lock_guard lock(mutex_);
    released_.push_back(CookieOf(socket).value_or(0));
  }
  SendReleases();
}

void SocketKeeper::SendReleases() {
  const std::lock_guard lock(mutex_);
  while (!released_.empty()) {
    const Order order{released_.back()};
    if (SendDescriptors(orders_.get(), BytesOf(order), {}, MSG_DONTWAIT) < 0) {
      if (errno == EAGAIN) return;
      // Without the process no socket is kept.
      return released_.clear();
    }
    released_.pop_back();
  }
}

}  // namespace rocegw::session
