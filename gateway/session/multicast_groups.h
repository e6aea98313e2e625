// SPDX-License-Identifier: Apache-2.0
// Which multicast groups a port must hear because some queue pair of some session is attached:
// counted per device. Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

class MulticastGroups {
 public:
  // Makes a port hear a group, or no longer. Not set: ports hear everything anyway.
  using Membership = std::function<Status(size_t device, const wire::Gid& group, bool joined)>;
  Membership membership;

  // One more attachment; an error is the port's, and nothing is counted then.
  Status Add(uint32_t device, const wire::Gid& group);
  void Remove(uint32_t device, const wire::Gid& group);

 private:
  std::map<std::pair<uint32_t, wire::Gid>, uint32_t> users_;
};

}  // namespace rocegw::session
