// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/connection.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/base/descriptor_message.h"

namespace rocegw::take_over {
namespace {

constexpr int kBacklog = 8;

StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Status(ENAMETOOLONG, "take-over socket " + path + ": a socket's path has at most " +
                                    std::to_string(sizeof address.sun_path - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Status Failed(const std::string& path, const char* what) {
  const int error = errno;
  return {error, "take-over socket " + path + ": " + what + ": " + std::strerror(error)};
}

UniqueFd OpenSocket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

StatusOr<UniqueFd> ListenForSuccessor(const std::string& path) {
  const auto address = AddressOf(path);
  if (!address.ok()) return address.status();
  ::unlink(path.c_str());
  UniqueFd socket = OpenSocket();
  if (!socket.valid()) return Failed(path, "socket");
  const auto* const name = reinterpret_cast<const sockaddr*>(&address.value());
  if (::bind(socket.get(), name, sizeof(sockaddr_un)) != 0) return Failed(path, "bind");
  // Before listen() no process can connect.
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    Status failed = Failed(path, "listen");
    ::unlink(path.c_str());
    return failed;
  }
  return socket;
}

StatusOr<UniqueFd> ConnectToPredecessor(const std::string& path) {
  const auto address = AddressOf(path);
  if (!address.ok()) return address.status();
  UniqueFd socket = OpenSocket();
  if (!socket.valid()) return Failed(path, "socket");
  const auto* const name = reinterpret_cast<const sockaddr*>(&address.value());
  if (::connect(socket.get(), name, sizeof(sockaddr_un)) != 0) return Failed(path, "connect");
  return socket;
}

StatusOr<PeerProcess> PeerOf(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return Status(errno, std::string("take-over: SO_PEERCRED: ") + std::strerror(errno));
  return PeerProcess{credentials.pid, credentials.uid};
}

bool IsTrusted(const PeerProcess& peer) { return peer.uid == 0 || peer.uid == ::geteuid(); }

void Connection::Send(const Message& message, const std::vector<int>& fds) {
  if (!socket_.valid()) return;
  std::vector<uint8_t> bytes = Encode(message);
  if (backlog_.empty() && TrySend(bytes, fds)) return;
  Waiting& waiting = backlog_.emplace_back();
  waiting.bytes = std::move(bytes);
  for (const int fd : fds) waiting.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void Connection::Flush() {
  while (!backlog_.empty()) {
    const Waiting& waiting = backlog_.front();
    std::vector<int> fds;
    for (const UniqueFd& fd : waiting.fds) fds.push_back(fd.get());
    if (!TrySend(waiting.bytes, fds)) return;
    backlog_.pop_front();
  }
}

bool Connection::TrySend(const std::vector<uint8_t>& content, const std::vector<int>& fds) const {
  const ssize_t sent = SendDescriptors(socket_.get(), content, fds, MSG_DONTWAIT);
  // Other errors mean that the other process has ended, which Receive reports.
  return sent >= 0 || (errno != EAGAIN && errno != ETOOMANYREFS && errno != ENOBUFS);
}

Connection::Received Connection::Receive() {
  Received received;
  std::vector<uint8_t> bytes(kMostBytes + 1024);
  DescriptorMessage message = ReceiveDescriptors(socket_.get(), bytes, MSG_DONTWAIT);
  // A process that ended with unread messages resets the connection; what it sent is behind that.
  if (message.length < 0 && errno == ECONNRESET)
    message = ReceiveDescriptors(socket_.get(), bytes, MSG_DONTWAIT);
  if (message.length < 0 && errno == EAGAIN) return received;
  if (message.length <= 0) {
    received.outcome = Outcome::kClosed;
    return received;
  }
  received.fds = std::move(message.fds);
  received.outcome = Outcome::kMalformed;
  if ((message.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return received;
  received.message = Decode({bytes.data(), static_cast<size_t>(message.length)});
  if (!received.message) return received;
  const auto* const labels = std::get_if<Descriptors>(&*received.message);
  if (received.fds.size() == (labels == nullptr ? 0 : labels->labels.size()))
    received.outcome = Outcome::kMessage;
  return received;
}

void Connection::Close() {
  backlog_.clear();
  socket_.Reset();
}

}  // namespace rocegw::take_over
