// SPDX-License-Identifier: Apache-2.0
// Holders of sockets of a UDP or TCP port in a network namespace (proc(5): net/udp, net/tcp,
// PID/fd). Blocking; control path, any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw {

enum class PortKind : uint8_t { kUdp, kTcp };

struct PortSocketLine {
  uint64_t inode = 0;
  uid_t uid = 0;
  bool operator==(const PortSocketLine&) const = default;
};

struct PortHolder {
  bool own = false;  // belongs to this process
  pid_t pid = 0;     // 0: no visible process has it
  std::string command;
  uid_t uid = 0;
};

// Parses the lines of /proc/net/udp, udp6, tcp or tcp6 with this local port; ignores other lines.
std::vector<PortSocketLine> SocketsOfPort(std::string_view table, uint16_t port);

// `proc`: mount point of proc(5). `net`: folder of the namespace's tables. Returns one holder per
// socket; processes that may not be examined are not found. TCP connections count as sockets, too.
std::vector<PortHolder> FindPortHolders(const std::string& proc, const std::string& net,
                                        PortKind kind, uint16_t port);

// Describes the first holder in the network namespace of the calling thread, another process if
// there is one: "process 33 (python3) of user 7", "a program of user 7", or "this process (socket
// of user 7)"; "" if no socket is seen.
std::string PortHolderText(PortKind kind, uint16_t port);

}  // namespace rocegw
