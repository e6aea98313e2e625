// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/link/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>

#include "gateway/base/errno_status.h"

namespace rocegw::far {
namespace {

constexpr int kBacklog = 64;

}  // namespace

Listener::~Listener() {
  if (id_ != nullptr) rdma_destroy_id(id_);
  if (channel_ != nullptr) rdma_destroy_event_channel(channel_);
}

Status Listener::Open(const std::string& host, const std::string& port) {
  channel_ = rdma_create_event_channel();
  if (channel_ == nullptr)
    return ErrnoStatus("no RDMA connection manager (started under rocegw-run?)");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  if (rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP) != 0)
    return ErrnoStatus("no RDMA identifier");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(host.empty() ? "0.0.0.0" : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return {EINVAL, host + ":" + port + ": " + gai_strerror(error)};
  const bool bound = rdma_bind_addr(id_, found->ai_addr) == 0;
  freeaddrinfo(found);
  if (!bound) return ErrnoStatus("cannot bind to " + host + ":" + port);
  if (rdma_listen(id_, kBacklog) != 0) return ErrnoStatus("cannot listen at " + host + ":" + port);
  return OkStatus();
}

std::string PeerAddress(rdma_cm_id* id) {
  const sockaddr* const peer = rdma_get_peer_addr(id);
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address =
      peer->sa_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(peer)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(peer)->sin_addr;
  inet_ntop(peer->sa_family, address, text.data(), text.size());
  return text.data();
}

std::string Listener::address() const {
  const sockaddr* const bound = rdma_get_local_addr(id());
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bound->sa_family == AF_INET6) {
    const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(bound)->sin6_addr;
    if (IN6_IS_ADDR_UNSPECIFIED(&address)) return {};
    inet_ntop(AF_INET6, &address, text.data(), text.size());
  } else {
    const in_addr address = reinterpret_cast<const sockaddr_in*>(bound)->sin_addr;
    if (address.s_addr == INADDR_ANY) return {};
    inet_ntop(AF_INET, &address, text.data(), text.size());
  }
  return text.data();
}

}  // namespace rocegw::far
