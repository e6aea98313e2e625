// SPDX-License-Identifier: Apache-2.0
// Who has sockets of a UDP port in this network namespace (proc(5): net/udp, PID/fd). Blocking;
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

// Lines of /proc/net/udp or udp6 with this local port. What is no such line is left out.
std::vector<UdpSocketLine> SocketsOfPort(std::string_view table, uint16_t port);

// proc: where proc(5) is mounted. One holder for each socket; processes that may not be looked into
// are not found.
std::vector<UdpPortHolder> FindHolders(const std::string& proc, uint16_t port);

}  // namespace rocegw::doctor
