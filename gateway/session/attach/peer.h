// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of an attach connection: process, user, and the time the process started,
// since process numbers are used again. The process descriptor tells when it ends, also when a
// forked child keeps the connection open (unix(7) SO_PEERCRED, pidfd_open(2), proc(5) stat field
// 22). Control thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::session {

struct Peer {
  pid_t pid = 0;  // 0: not visible in our process id namespace
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t start_time = 0;  // clock ticks after boot
  std::string comm;
  std::string cgroup;  // see ProcessCgroup; empty: not known
  UniqueFd process;    // readable when the process has ended; invalid when it is not visible
};

// ESRCH when the process is gone already, or its number belongs to another by now.
StatusOr<Peer> IdentifyPeer(int socket);

// Path of a process in the cgroup2 tree (cgroups(7), /proc/PID/cgroup). On a host with version 1 or
// both versions a process may be at the root of that tree or outside of it though it is in a
// container; then the first other hierarchy in which it is below the root. Empty: the process is in
// no hierarchy, or destroyed.
std::string CgroupIn(const std::string& text);  // text: of /proc/PID/cgroup
std::string ProcessCgroup(pid_t pid);

// Start time of a process; nothing when there is none of that number.
std::optional<uint64_t> ProcessStartTime(pid_t pid);

}  // namespace rocegw::session
