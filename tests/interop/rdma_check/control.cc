// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/control.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kMaxMessage = 1 << 16;

struct AddressList {
  explicit AddressList(const std::string& address, uint16_t port, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    const int code = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &first);
    if (code != 0) Fail("address ", address, ": ", gai_strerror(code));
  }
  ~AddressList() { freeaddrinfo(first); }
  AddressList(const AddressList&) = delete;
  AddressList& operator=(const AddressList&) = delete;
  addrinfo* first = nullptr;
};

// IPv4 peers of a dual-stack socket appear with mapped addresses; librdmacm wants them as IPv4.
sockaddr_storage Unmapped(const sockaddr_storage& address) {
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) return address;
  sockaddr_storage result{};
  auto& four = reinterpret_cast<sockaddr_in&>(result);
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
  return result;
}

}  // namespace

Control::Control(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Control::~Control() { close(fd_); }

int Control::Connect(const std::string& address, uint16_t port) {
  const AddressList list(address, port, 0);
  const int fd = socket(list.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CheckErrno(fd >= 0, "socket");
  CheckErrno(connect(fd, list.first->ai_addr, list.first->ai_addrlen) == 0, "connect to ", address,
             " port ", port);
  return fd;
}

int Control::Listen(const std::string& address, uint16_t port) {
  const AddressList list(address.empty() ? "::" : address, port, AI_PASSIVE);
  const int fd = socket(list.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CheckErrno(fd >= 0, "socket");
  const int on = 1;
  const int off = 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (list.first->ai_family == AF_INET6) {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  CheckErrno(bind(fd, list.first->ai_addr, list.first->ai_addrlen) == 0 && listen(fd, 8) == 0,
             "listen on ", address, " port ", port);
  return fd;
}

void Control::Send(std::string_view kind, std::string_view body) {
  std::string message(4, '\0');
  message.append(kind).append(" ").append(body);
  const uint32_t length = static_cast<uint32_t>(message.size() - 4);
  Check(length <= kMaxMessage, "control message too long");
  std::memcpy(message.data(), &length, sizeof length);
  size_t done = 0;
  while (done < message.size()) {
    const ssize_t n = send(fd_, message.data() + done, message.size() - done, MSG_NOSIGNAL);
    CheckErrno(n > 0 || errno == EINTR, "control connection");
    if (n > 0) done += static_cast<size_t>(n);
  }
}

bool Control::ReadAll(void* data, size_t length, std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  auto* bytes = static_cast<char*>(data);
  size_t done = 0;
  while (done < length) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    Check(left.count() > 0, "control connection: peer silent for ", timeout.count(), " s");
    if (poll(&wait, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t n = recv(fd_, bytes + done, length - done, 0);
    if (n == 0 && done == 0) return false;
    CheckErrno(n > 0 || (n < 0 && errno == EINTR), "control connection broken");
    if (n > 0) done += static_cast<size_t>(n);
  }
  return true;
}

bool Control::Receive(std::string* kind, std::string* body, std::chrono::seconds timeout) {
  uint32_t length = 0;
  if (!ReadAll(&length, sizeof length, timeout)) return false;
  Check(length <= kMaxMessage, "control message too long");
  std::string message(length, '\0');
  Check(ReadAll(message.data(), length, kControlTimeout), "control connection broken");
  const size_t space = message.find(' ');
  Check(space != std::string::npos, "control message without a kind");
  *kind = message.substr(0, space);
  *body = message.substr(space + 1);
  return true;
}

std::string Control::Expect(std::string_view expected) {
  std::string kind;
  std::string body;
  Check(Receive(&kind, &body), "peer closed the control connection");
  if (kind == "end") {
    // Not ours to consume: End() must still find it.
    peer_end_ = body;
    throw PeerFailure("peer ended the case: " + body);
  }
  Check(kind == expected, "peer sent '", kind, " ", body, "' where '", expected, "' was due");
  return body;
}

void Control::Sync(std::string_view point) {
  Send("sync", point);
  const std::string theirs = Expect("sync");
  Check(theirs == point, "peer is at '", theirs, "', we are at '", point, "'");
}

std::string Control::Exchange(std::string_view mine) {
  Send("data", mine);
  return Expect("data");
}

std::string Control::End(std::string_view verdict) {
  Send("end", verdict);
  if (peer_end_) {
    std::string theirs = *peer_end_;
    peer_end_.reset();
    return theirs;
  }
  std::string kind;
  std::string body;
  do {
    Check(Receive(&kind, &body), "peer closed the control connection");
  } while (kind != "end");
  return body;
}

sockaddr_storage Control::LocalAddress() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  CheckErrno(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  return Unmapped(address);
}

sockaddr_storage Control::PeerAddress() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  CheckErrno(getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0, "getpeername");
  return Unmapped(address);
}

}  // namespace rocegw::interop
