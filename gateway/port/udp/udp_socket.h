// SPDX-License-Identifier: Apache-2.0
// The two kinds of kernel UDP socket that the udp port mode uses, with every option they need
// (udp(7), ip(7), ipv6(7)). Control path, except that a sending queue opens a socket when it meets
// a new source port.
#pragma once

#include <linux/filter.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Smallest UDP payload that two socket calls agree on for one segmented send.
inline constexpr size_t kMaxUdpPayload = 65507;
inline constexpr size_t kMaxSegments = 64;

struct ReceiveSocketOptions {
  uint16_t port = 0;
  size_t buffer_bytes = 0;
  // Runs once per reuseport group: give it with the group's first socket only.
  std::span<const sock_filter> steering;
  // Set: bound to this address alone and in no group, so that the kernel lets nobody else have it.
  std::optional<wire::Gid> address;
};

struct ReceiveSocket {
  UniqueFd fd;
  size_t buffer_bytes = 0;  // that the kernel granted, in datagram bytes
  bool dual_stack = false;  // false: the kernel has no IPv6, the socket is AF_INET
};

// Bound to all addresses and member of the port's reuseport group unless `address` says otherwise;
// non-blocking, with receive offload; each message carries destination address, traffic class and
// hop limit. IPv4 arrives mapped.
StatusOr<ReceiveSocket> OpenReceiveSocket(const ReceiveSocketOptions& options);

// Only sends: bound to a source port, refuses everything that comes in. Never fragments: DF is set,
// and the IPv4 ID of a datagram is 0, of segment k of a send k. Unconnected for that reason.
StatusOr<UniqueFd> OpenTransmitSocket(int family, uint16_t source_port, size_t buffer_bytes);

// Receives for all addresses of the port, IPv4 and IPv6, and drops everything.
StatusOr<UniqueFd> OpenSilentSocket(uint16_t port);

}  // namespace rocegw::port
