// SPDX-License-Identifier: Apache-2.0
// Process at the other end of an attach connection: number, user, and start time, since process
// numbers are reused. The process descriptor reports its exit even if a forked child keeps the
// connection open (unix(7) SO_PEERCRED, pidfd_open(2), proc(5) stat field 22). Control thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::session {

struct Peer {
  pid_t pid = 0;  // 0: not visible in our PID namespace
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t start_time = 0;  // clock ticks after boot
  std::string comm;
  std::string cgroup;  // see ProcessCgroup; empty: unknown
  UniqueFd process;    // readable after the exit; invalid if the process is not visible
};

// Returns ESRCH if the process has exited, or its number belongs to another process by now.
StatusOr<Peer> IdentifyPeer(int socket);

// Returns the path of a process in the cgroup2 tree (cgroups(7), /proc/PID/cgroup). On a host with
// cgroup version 1 or both, a process in a container may be at the root of that tree or outside;
// then the first other hierarchy with a path below its root. Empty: the process is in no hierarchy,
// or has exited.
std::string CgroupIn(const std::string& text);  // `text`: content of /proc/PID/cgroup
std::string ProcessCgroup(pid_t pid);

// Returns the start time of a process; nothing if there is none of that number.
std::optional<uint64_t> ProcessStartTime(pid_t pid);

}  // namespace rocegw::session
