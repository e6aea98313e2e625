// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/member_connections.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "controlplane/server/front/hand_off_slots.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::server {

MemberConnections::Verdict MemberConnections::Add(const std::string& principal, int handed,
                                                  uint64_t cookie, Clock::time_point now) {
  std::erase_if(expelled_, [now](const auto& one) { return one.second <= now; });
  if (expelled_.contains(principal)) return Verdict::kExpelled;
  std::vector<Member>& members = members_[principal];
  if (members.size() >= most_) {
    std::erase_if(members,
                  [](const Member& one) { return SocketCookie(one.handed) != one.cookie; });
  }
  if (members.size() >= most_) return Verdict::kTooMany;
  members.push_back({.handed = handed, .cookie = cookie});
  return Verdict::kAdded;
}

size_t MemberConnections::Expel(const std::string& principal, Clock::time_point now) {
  expelled_[principal] = now + kExpelledFor;
  const auto of_principal = members_.extract(principal);
  if (of_principal.empty()) return 0;
  size_t count = 0;
  for (const Member& one : of_principal.mapped()) {
    // gRPC may close its descriptor at any time; the copy stays what it is.
    const UniqueFd copy(fcntl(one.handed, F_DUPFD_CLOEXEC, 0));
    if (!copy.valid() || SocketCookie(copy.get()) != one.cookie) continue;
    shutdown(copy.get(), SHUT_RDWR);
    ++count;
  }
  return count;
}

}  // namespace rocegw::server
