// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace rocegw::server {

PeerAddress AddressOf(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  if (from.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return {"[" + std::string(text) + "]:" + std::to_string(ntohs(v6.sin6_port)), [&] {
              in6_addr network = v6.sin6_addr;
              std::memset(&network.s6_addr[8], 0, 8);
              inet_ntop(AF_INET6, &network, text, sizeof text);
              return std::string(text) + "/64";
            }()};
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
  const void* const address = from.ss_family == AF_INET6
                                  ? static_cast<const void*>(&v6.sin6_addr.s6_addr[12])
                                  : &v4.sin_addr;
  const in_port_t port = from.ss_family == AF_INET6 ? v6.sin6_port : v4.sin_port;
  inet_ntop(AF_INET, address, text, sizeof text);
  return {std::string(text) + ":" + std::to_string(ntohs(port)), text};
}

std::string PeerKey(std::string_view grpc_peer) {
  const bool v6 = grpc_peer.starts_with("ipv6:");
  if (!v6 && !grpc_peer.starts_with("ipv4:")) return {};
  std::string key;
  bool in_zone = false;
  for (size_t i = 5; i < grpc_peer.size(); ++i) {
    char c = grpc_peer[i];
    if (c == '%') {  // gRPC writes brackets and the zone's sign as %5B, %5D and %25
      const std::string_view code = grpc_peer.substr(i + 1, 2);
      i += 2;
      if (code == "25") in_zone = true;
      if (code != "5B" && code != "5D") continue;
      c = code == "5B" ? '[' : ']';
    }
    if (c == ']') in_zone = false;
    if (!in_zone) key += c;
  }
  return key;
}

}  // namespace rocegw::server
