// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/multicast_groups.h"

namespace rocegw::session {

Status MulticastGroups::Add(uint32_t device, const wire::Gid& group) {
  const auto [found, first] = users_.try_emplace({device, group}, 0);
  if (first && membership) {
    Status joined = membership(device, group, true);
    if (!joined.ok()) {
      users_.erase(found);
      return joined;
    }
  }
  ++found->second;
  return OkStatus();
}

void MulticastGroups::Remove(uint32_t device, const wire::Gid& group) {
  const auto found = users_.find({device, group});
  if (found == users_.end() || --found->second != 0) return;
  users_.erase(found);
  if (membership) (void)membership(device, group, false);
}

}  // namespace rocegw::session
