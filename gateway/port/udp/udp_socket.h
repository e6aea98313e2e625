// SPDX-License-Identifier: Apache-2.0
// The kinds of kernel UDP sockets of the udp port mode, with all options (udp(7), ip(7),
// ipv6(7)). Control path, except that a sending queue opens a socket for a new source port.
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
  // Steering program, set once per reuseport group: pass it with the group's first socket only.
  std::span<const sock_filter> steering;
  // If set: bound to this address only and in no group, so that the kernel refuses other sockets on
  // it.
  std::optional<wire::Gid> address;
};

struct ReceiveSocket {
  UniqueFd fd;
  size_t buffer_bytes = 0;  // granted by the kernel, in datagram bytes
  bool dual_stack = false;  // false: the kernel has no IPv6, the socket is AF_INET
};

// Opens a non-blocking socket with receive offload, bound to all addresses and member of the port's
// reuseport group unless `address` is set. Each message carries destination address, traffic class
// and hop limit. IPv4 arrives mapped.
StatusOr<ReceiveSocket> OpenReceiveSocket(const ReceiveSocketOptions& options);

// Changes the receive buffer of such a socket. Returns the granted size in datagram bytes.
size_t SetReceiveBuffer(int fd, size_t bytes);

// Drops input for which the program returns 0, before it is queued; an empty program: nothing more.
// Returns false if the kernel takes no program of that length.
bool FilterInput(int fd, std::span<const sock_filter> program);

// Lets the kernel merge datagrams of one flow for such a socket (UDP_GRO), as it does at first, or
// not.
void SetMergedReceive(int fd, bool merged);

// Lets a receive socket send as a transmit socket does. Returns false if the kernel refuses.
bool LetSend(int receive_fd, size_t buffer_bytes);

struct TransmitSocket {
  UniqueFd fd;
  uint16_t port = 0;  // the one of the list that it is bound to
};

// Opens a socket that only sends: bound to the first free port of the list, drops all input. Never
// fragments: DF is set, and the IPv4 ID of a datagram is 0, of segment k of a send k. It is
// unconnected, since the ID of a connected socket differs.
StatusOr<TransmitSocket> OpenTransmitSocket(int family, std::span<const uint16_t> source_ports,
                                            size_t buffer_bytes);

// Opens a socket that receives for all addresses of the port, IPv4 and IPv6, and drops everything.
// `shared`: sockets of this user with SO_REUSEPORT may be bound to the port as well.
StatusOr<UniqueFd> OpenSilentSocket(uint16_t port, bool shared = false);

}  // namespace rocegw::port
