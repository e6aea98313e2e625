// SPDX-License-Identifier: Apache-2.0
#include "gateway/process/socket/unix_acceptor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rocegw::process {
namespace {

constexpr int kListenBacklog = 256;
// Pause after descriptors ran out.
constexpr int kPauseMilliseconds = 100;
// SO_PASSRIGHTS, Linux 6.16.
constexpr int kPassRights = 83;

}  // namespace

StatusOr<UniqueFd> ListenOnUnixSocket(const SocketWords& words, const std::string& path,
                                      mode_t mode, uid_t uid, gid_t gid) {
  if (Status status = ClaimSocket(words, path); !status.ok()) return status;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [&](const char* what) {
    const int error = errno;
    return Status(error, ExplainSocket(words, path, what, error));
  };
  if (!socket.valid()) return failed("socket");
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  if (::bind(socket.get(), name, sizeof address) != 0) return failed("bind");
  // Before listen() no process can connect.
  if (::chown(path.c_str(), uid, gid) != 0 || ::chmod(path.c_str(), mode) != 0) {
    Status status = failed("set owner and mode");
    ::unlink(path.c_str());
    return status;
  }
  if (::listen(socket.get(), kListenBacklog) != 0) {
    Status status = failed("listen");
    ::unlink(path.c_str());
    return status;
  }
  return socket;
}

Status UnixAcceptor::Start(UniqueFd listener, const char* name, Accepted accepted) {
  wake_.Reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.valid()) return {errno, std::string(name) + ": eventfd: " + std::strerror(errno)};
  listener_ = std::move(listener);
  // Descriptors that a peer passes would be closed by the thread that reads, which the peer could
  // make wait. Connections inherit the option. Older kernels do not know it.
  const int off = 0;
  (void)::setsockopt(listener_.get(), SOL_SOCKET, kPassRights, &off, sizeof off);
  accepted_ = std::move(accepted);
  stop_.store(false);
  thread_ = std::thread(&UnixAcceptor::Run, this);
  ::pthread_setname_np(thread_.native_handle(), name);
  return OkStatus();
}

void UnixAcceptor::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  Wake();
  thread_.join();
  listener_.Reset();
}

void UnixAcceptor::SetAccepting(bool accepting) {
  accepting_.store(accepting);
  if (thread_.joinable()) Wake();
}

void UnixAcceptor::Wake() const {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

bool UnixAcceptor::AcceptAll() {
  while (accepting_.load()) {
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      accepted_(std::move(connection));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    return errno == EAGAIN;
  }
  return true;
}

void UnixAcceptor::Run() {
  bool pause = false;
  while (!stop_.load()) {
    const bool accepts = accepting_.load() && !pause;
    pollfd polled[] = {{wake_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
    (void)::poll(polled, 2, pause ? kPauseMilliseconds : -1);
    pause = false;
    if (polled[0].revents != 0) {
      uint64_t value = 0;
      (void)!::read(wake_.get(), &value, sizeof value);
    }
    // The pending connection would end each poll at once.
    if (polled[1].revents != 0) pause = !AcceptAll();
  }
}

}  // namespace rocegw::process
