// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "examples/kv_store/link.h"
#include "examples/kv_store/message.h"

namespace kv {
namespace {

// Returns false if the socket did not become ready until `end`.
bool WaitUntil(int fd, int16_t events, Clock::time_point end) {
  const auto left = std::chrono::ceil<Milliseconds>(end - Clock::now()).count();
  pollfd entry{fd, events, 0};
  return left > 0 && ::poll(&entry, 1, static_cast<int>(left)) == 1;
}

// A connection: each message follows its length, 32 bits in network order.
class TcpLink final : public Link {
 public:
  explicit TcpLink(int fd) : fd_(fd) {
    const int yes = 1;
    (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  }
  ~TcpLink() override { ::close(fd_); }
  TcpLink(const TcpLink&) = delete;
  TcpLink& operator=(const TcpLink&) = delete;

  Transport transport() const override { return Transport::kTcp; }

  bool Send(const std::string& bytes, Milliseconds limit) override {
    const uint32_t length = htonl(static_cast<uint32_t>(bytes.size()));
    std::string all(reinterpret_cast<const char*>(&length), sizeof(length));
    all += bytes;
    const auto end = Clock::now() + limit;
    for (size_t sent = 0; sent < all.size();) {
      const ssize_t done =
          ::send(fd_, all.data() + sent, all.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (done > 0) {
        sent += static_cast<size_t>(done);
      } else if ((errno != EAGAIN && errno != EINTR) || !WaitUntil(fd_, POLLOUT, end)) {
        return false;
      }
    }
    return true;
  }

  bool Receive(std::string& bytes, Milliseconds limit) override {
    const auto end = Clock::now() + limit;
    uint32_t length = 0;
    if (!Fill(reinterpret_cast<char*>(&length), sizeof(length), end)) return false;
    length = ntohl(length);
    if (length > kLongestMessage) return false;
    bytes.resize(length);
    return Fill(bytes.data(), length, end);
  }

 private:
  bool Fill(char* to, size_t bytes, Clock::time_point end) const {
    for (size_t got = 0; got < bytes;) {
      const ssize_t done = ::recv(fd_, to + got, bytes - got, MSG_DONTWAIT);
      if (done > 0) {
        got += static_cast<size_t>(done);
      } else if (done == 0 || (errno != EAGAIN && errno != EINTR) || !WaitUntil(fd_, POLLIN, end)) {
        return false;
      }
    }
    return true;
  }

  const int fd_;
};

bool ToSocketAddress(const std::string& address, uint16_t port, sockaddr_in& out) {
  out = {};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  return ::inet_pton(AF_INET, address.c_str(), &out.sin_addr) == 1;
}

}  // namespace

std::unique_ptr<Link> ConnectTcp(const std::string& address, uint16_t port, Milliseconds limit) {
  sockaddr_in to{};
  if (!ToSocketAddress(address, port, to)) return nullptr;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return nullptr;
  auto link = std::make_unique<TcpLink>(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0) return link;
  if (errno != EINPROGRESS || !WaitUntil(fd, POLLOUT, Clock::now() + limit)) return nullptr;
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return nullptr;
  return link;
}

bool ServeTcp(const std::string& address, uint16_t port, const OnLink& on_link) {
  sockaddr_in at{};
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  if (!ToSocketAddress(address, port, at) || fd < 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0 || ::listen(fd, 64) != 0)
    return false;
  while (true) {
    const int connection = ::accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      on_link(std::make_unique<TcpLink>(connection));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      ::usleep(100'000);  // the connection stays in the backlog
    }
  }
}

}  // namespace kv
