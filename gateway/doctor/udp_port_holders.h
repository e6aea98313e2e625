// SPDX-License-Identifier: Apache-2.0
// Holders of sockets of a UDP port in this network namespace (proc(5): net/udp, PID/fd). Blocking;
// control path, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

struct UdpSocketLine {
  uint64_t inode = 0;
  uid_t uid = 0;
  bool operator==(const UdpSocketLine&) const = default;
};

// Parses the lines of /proc/net/udp or udp6 with this local port; ignores other lines.
std::vector<UdpSocketLine> SocketsOfPort(std::string_view table, uint16_t port);

// `proc`: mount point of proc(5). Returns one holder per socket; processes that may not be examined
// are not found.
std::vector<UdpPortHolder> FindHolders(const std::string& proc, uint16_t port);

}  // namespace rocegw::doctor
