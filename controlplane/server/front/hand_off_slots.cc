// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/hand_off_slots.h"

#include <sys/socket.h>

namespace rocegw::server {

uint64_t SocketCookie(int fd) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

bool HandOffSlots::HasRoomFor(const std::string& source) const {
  return taken_ < most_ && TakenBy(source) < most_per_source_;
}

size_t HandOffSlots::TakenBy(const std::string& source) const {
  const auto found = by_source_.find(source);
  return found == by_source_.end() ? 0 : found->second;
}

void HandOffSlots::Take(const std::string& source) {
  ++taken_;
  ++by_source_[source];
}

void HandOffSlots::Release(const std::string& source) {
  --taken_;
  const auto found = by_source_.find(source);
  if (--found->second == 0) by_source_.erase(found);
}

void HandOffSlots::ReleaseAfter(const std::string& source, int handed, uint64_t cookie,
                                Clock::time_point now) {
  settling_.push_back(
      {.source = source, .handed = handed, .cookie = cookie, .deadline = now + kMostSettling});
}

void HandOffSlots::ReleaseSettled(Clock::time_point now) {
  std::erase_if(settling_, [&](const Settling& one) {
    if (SocketCookie(one.handed) == one.cookie && now < one.deadline) return false;
    Release(one.source);
    return true;
  });
}

}  // namespace rocegw::server
