// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "controlplane/server/front/received_bytes.h"

namespace rocegw::server {
namespace {

// Receive buffer of accepted connections in bytes. Larger than what may arrive from a stranger,
// since the kernel reports a socket as readable in spite of the low-water mark when its buffer is
// full.
constexpr int kReceiveBuffer = 1 << 18;

Status CannotListen(const std::string& address, int error) {
  return {error,
          "address " + address + ": cannot listen there: " + std::strerror(error) +
              (error == EADDRINUSE ? "; another process has the port: stop it, or set address"
                                   : "; set address to one of this host")};
}

}  // namespace

StatusOr<ListeningSocket> ListenAt(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  const auto port = htons(static_cast<uint16_t>(std::stoul(address.substr(colon + 1))));
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_in);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&storage);
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    length = sizeof *v6;
    inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr);
  } else {
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
  }
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  ListeningSocket listening;
  UniqueFd& fd = listening.fd;
  fd.Reset(socket(storage.ss_family, kKind, 0));
  // Without IPv6 the any-address means that of IPv4.
  if (!fd.valid() && errno == EAFNOSUPPORT && host == "::") {
    storage = {};
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    length = sizeof *v4;
    fd.Reset(socket(AF_INET, kKind, 0));
  }
  const int on = 1;
  const int off = 0;
  SetReceiveBuffer(fd.get(), kReceiveBuffer);
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (storage.ss_family == AF_INET6 && host == "::") {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  auto* const generic = reinterpret_cast<sockaddr*>(&storage);
  if (bind(fd.get(), generic, length) != 0 || listen(fd.get(), SOMAXCONN) != 0 ||
      getsockname(fd.get(), generic, &length) != 0) {
    const int error = errno;
    return CannotListen(address, error);
  }
  listening.port = ntohs(storage.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
  return listening;
}

}  // namespace rocegw::server
