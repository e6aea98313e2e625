// SPDX-License-Identifier: Apache-2.0
#include "agent/probe_program/plain_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocegw::probe {
namespace {

using Clock = std::chrono::steady_clock;

// Time for the first bytes of a connection. The other end sends them right after its connect; a
// lost packet comes again after some 200 ms.
constexpr std::chrono::milliseconds kHeadWithin(500);
// Connections that wait to be accepted. Those of strangers must not keep the other end's out.
constexpr int kMostWaiting = 64;
constexpr timeval kTransferLimit{.tv_sec = 5, .tv_usec = 0};
// Datagrams of one measurement, with what the kernel adds to each.
constexpr int kReceiveBuffer = 2 << 20;

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
  const sockaddr* any() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  int family() const { return bytes.ss_family; }
};

[[noreturn]] void FailWith(const std::string& what, int error) {
  throw NetworkProblem{what + ": " + std::strerror(error)};
}

Address Parse(const std::string& text, uint16_t port) {
  Address address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.bytes);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
  } else {
    throw NetworkProblem{"'" + text + "' is no address"};
  }
  return address;
}

UniqueFd Open(const Address& address, int type) {
  UniqueFd fd(socket(address.family(), type | SOCK_CLOEXEC, 0));
  if (!fd.valid()) FailWith("socket", errno);
  return fd;
}

void SetOption(const UniqueFd& fd, int level, int name, int value, const char* what) {
  if (setsockopt(fd.get(), level, name, &value, sizeof value) != 0) FailWith(what, errno);
}

void SetLimits(const UniqueFd& fd) {
  for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (setsockopt(fd.get(), SOL_SOCKET, name, &kTransferLimit, sizeof kTransferLimit) != 0)
      FailWith("a time limit", errno);
  }
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
}

std::chrono::milliseconds LeftUntil(Clock::time_point end) {
  return std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
}

// Returns false if nothing happened in time.
bool Await(const UniqueFd& fd, int16_t events, std::chrono::milliseconds within) {
  pollfd ready{.fd = fd.get(), .events = events, .revents = 0};
  return poll(&ready, 1, static_cast<int>(std::max<int64_t>(within.count(), 0))) == 1;
}

UniqueFd Bound(const std::string& address, int type) {
  const Address own = Parse(address, 0);
  UniqueFd fd = Open(own, type);
  if (bind(fd.get(), own.any(), own.length) != 0) FailWith("bind to " + address, errno);
  return fd;
}

}  // namespace

PlainSocket PlainSocket::Datagrams(const std::string& address) {
  UniqueFd fd = Bound(address, SOCK_DGRAM);
  const bool v6 = address.find(':') != std::string::npos;
  SetOption(fd, v6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP}, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1,
            "the traffic class of datagrams");
  // The kernel may allow less.
  (void)setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof kReceiveBuffer);
  return {std::move(fd), {}};
}

PlainSocket PlainSocket::Listener(const std::string& address) {
  // A connection that is reset before it is accepted must not block.
  UniqueFd fd = Bound(address, SOCK_STREAM | SOCK_NONBLOCK);
  if (listen(fd.get(), kMostWaiting) != 0) FailWith("listen", errno);
  return {std::move(fd), {}};
}

PlainSocket PlainSocket::DatagramsTo(const std::string& address, uint16_t port) {
  const Address there = Parse(address, port);
  UniqueFd fd = Open(there, SOCK_DGRAM);
  const bool v6 = there.family() == AF_INET6;
  SetOption(fd, v6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP}, v6 ? IPV6_TCLASS : IP_TOS,
            kDscp << 2 | kEcnCapable, "the traffic class");
  const std::string peer = "UDP to " + address + " port " + std::to_string(port);
  if (connect(fd.get(), there.any(), there.length) != 0) FailWith(peer, errno);
  return {std::move(fd), peer};
}

PlainSocket PlainSocket::ConnectTo(const std::string& address, uint16_t port,
                                   std::chrono::milliseconds within) {
  const Address there = Parse(address, port);
  UniqueFd fd = Open(there, SOCK_STREAM | SOCK_NONBLOCK);
  const std::string peer = "TCP to " + address + " port " + std::to_string(port);
  if (connect(fd.get(), there.any(), there.length) != 0) {
    if (errno != EINPROGRESS) FailWith(peer, errno);
    if (!Await(fd, POLLOUT, within)) FailWith(peer, ETIMEDOUT);
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (error != 0) FailWith(peer, error);
  }
  if (fcntl(fd.get(), F_SETFL, 0) != 0) FailWith("a blocking socket", errno);
  SetLimits(fd);
  return {std::move(fd), peer};
}

uint16_t PlainSocket::port() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    FailWith("getsockname", errno);
  return address.ss_family == AF_INET6
             ? ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port)
             : ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void PlainSocket::SendDatagram(const std::vector<uint8_t>& bytes) const {
  const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), 0);
  // ECONNREFUSED: an answer by ICMP to an earlier datagram; the receiver counts what it gets.
  if (sent < 0 && errno != ENOBUFS && errno != EAGAIN && errno != ECONNREFUSED)
    FailWith(peer_, errno);
}

bool PlainSocket::ReceiveDatagram(std::chrono::milliseconds within, std::vector<uint8_t>& bytes,
                                  uint8_t& traffic_class) const {
  const auto end = Clock::now() + within;
  for (;;) {
    const auto left = LeftUntil(end);
    // Datagrams of strangers may wait at every moment: the time decides, not whether one is there.
    if (left.count() <= 0 || !Await(fd_, POLLIN, left)) return false;
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t length = recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_TRUNC);
    if (length != static_cast<ssize_t>(bytes.size())) {
      if (length < 0 && errno != EAGAIN) return false;
      continue;
    }
    traffic_class = 0;
    for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
      // IPv4 gives one byte, IPv6 a number, whose first byte counts on little-endian machines only.
      if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS) {
        std::memcpy(&traffic_class, CMSG_DATA(at), 1);
      } else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_TCLASS) {
        int value = 0;
        std::memcpy(&value, CMSG_DATA(at), sizeof value);
        traffic_class = static_cast<uint8_t>(value);
      }
    }
    return true;
  }
}

PlainSocket PlainSocket::Accept(std::chrono::milliseconds within) const {
  const auto end = Clock::now() + within;
  for (;;) {
    const auto left = LeftUntil(end);
    if (left.count() <= 0 || !Await(fd_, POLLIN, left))
      FailWith("TCP from the other end", ETIMEDOUT);
    UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) continue;
      FailWith("accept", errno);
    }
    SetLimits(fd);
    return {std::move(fd), "TCP from the other end"};
  }
}

PlainSocket PlainSocket::AcceptWithHead(const void* head, size_t length,
                                        std::chrono::milliseconds within) const {
  const auto end = Clock::now() + within;
  std::vector<uint8_t> bytes(length);
  for (;;) {
    PlainSocket socket = Accept(LeftUntil(end));
    if (socket.ReadAll(bytes, std::min(end, Clock::now() + kHeadWithin)) &&
        std::memcmp(bytes.data(), head, length) == 0)
      return socket;
  }
}

bool PlainSocket::ReadAll(std::vector<uint8_t>& bytes, Clock::time_point end) const {
  size_t have = 0;
  while (have < bytes.size()) {
    const auto left = LeftUntil(end);
    if (left.count() <= 0 || !Await(fd_, POLLIN, left)) return false;
    const ssize_t got = recv(fd_.get(), bytes.data() + have, bytes.size() - have, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    have += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
  return true;
}

void PlainSocket::Write(const void* bytes, size_t length) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (length > 0) {
    const ssize_t sent = send(fd_.get(), at, length, MSG_NOSIGNAL);
    if (sent < 0) FailWith(peer_, errno == EAGAIN ? ETIMEDOUT : errno);
    at += sent;
    length -= static_cast<size_t>(sent);
  }
}

void PlainSocket::Read(void* bytes, size_t length) {
  auto* at = static_cast<uint8_t*>(bytes);
  while (length > 0) {
    const ssize_t got = recv(fd_.get(), at, length, 0);
    if (got == 0) FailWith(peer_, ECONNRESET);
    if (got < 0) FailWith(peer_, errno == EAGAIN ? ETIMEDOUT : errno);
    at += got;
    length -= static_cast<size_t>(got);
  }
}

}  // namespace rocegw::probe
