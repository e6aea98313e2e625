// SPDX-License-Identifier: Apache-2.0
// Names of the other end of a TCP connection, as the kernel and gRPC write them.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

namespace rocegw::server {

struct PeerAddress {
  std::string key;     // "10.0.0.1:4711" or "[2001:db8::1]:4711"
  std::string source;  // an IPv4 address, or the /64 network of an IPv6 address
};

PeerAddress AddressOf(const sockaddr_storage& from);

// Converts grpc::ServerContext::peer() to PeerAddress::key. Empty: not TCP.
std::string PeerKey(std::string_view grpc_peer);

}  // namespace rocegw::server
