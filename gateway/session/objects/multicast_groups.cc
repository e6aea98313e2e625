// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/objects/multicast_groups.h"

#include <algorithm>

namespace rocegw::session {

std::optional<size_t> MulticastGroups::ShareExceeded(const Attachment& wanted, size_t pools) const {
  if (!capacity || of_pools_.contains(wanted)) return std::nullopt;
  const std::optional<size_t> most = capacity(wanted.device, wanted.group.IsV4());
  if (!most) return std::nullopt;
  const size_t share = std::max<size_t>(*most / std::max<size_t>(pools, 1), 1);
  const auto held = groups_.find(ShareOf(wanted));
  if (held == groups_.end() || held->second < share) return std::nullopt;
  return share;
}

Status MulticastGroups::Add(const Attachment& wanted) {
  const auto [found, first] = users_.try_emplace({wanted.device, wanted.group}, 0);
  if (first && membership) {
    Status joined = membership(wanted.device, wanted.group, true);
    if (!joined.ok()) {
      users_.erase(found);
      return joined;
    }
  }
  ++found->second;
  if (++of_pools_[wanted] == 1) ++groups_[ShareOf(wanted)];
  return OkStatus();
}

void MulticastGroups::Remove(const Attachment& known) {
  const auto of_pool = of_pools_.find(known);
  if (of_pool == of_pools_.end()) return;
  if (--of_pool->second == 0) {
    of_pools_.erase(of_pool);
    const auto held = groups_.find(ShareOf(known));
    if (--held->second == 0) groups_.erase(held);
  }
  const auto found = users_.find({known.device, known.group});
  if (--found->second != 0) return;
  users_.erase(found);
  if (membership) (void)membership(known.device, known.group, false);
}

}  // namespace rocegw::session
