// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/choose_donor.h"

#include <algorithm>

namespace rocegw::far {

std::optional<uint32_t> ChooseDonor(const std::vector<DonorOffer>& donors, const Slab& slab,
                                    uint64_t slab_bytes) {
  const auto shares_domain = [&](uint32_t donor) {
    return std::any_of(slab.replicas().begin(), slab.replicas().end(), [&](const Replica& replica) {
      return !donors[replica.donor].draining &&
             donors[replica.donor].domain == donors[donor].domain;
    });
  };
  std::optional<uint32_t> best;
  bool best_shares = false;
  for (uint32_t donor = 0; donor < donors.size(); donor++) {
    const DonorOffer& offer = donors[donor];
    if (!offer.usable || offer.draining || offer.free_bytes < slab_bytes || slab.Has(donor)) {
      continue;
    }
    const bool shares = shares_domain(donor);
    const bool better =
        !best ||
        (shares != best_shares ? best_shares : offer.free_bytes > donors[*best].free_bytes);
    if (!better) continue;
    best = donor;
    best_shares = shares;
  }
  return best;
}

bool LacksReplica(const std::vector<DonorOffer>& donors, const Slab& slab, uint32_t wanted) {
  const std::vector<Replica>& replicas = slab.replicas();
  const auto staying =
      std::count_if(replicas.begin(), replicas.end(),
                    [&donors](const Replica& replica) { return !donors[replica.donor].draining; });
  return static_cast<uint32_t>(staying) < wanted && replicas.size() <= wanted;
}

std::optional<uint32_t> ChooseDropped(const std::vector<DonorOffer>& donors, const Slab& slab,
                                      uint32_t wanted) {
  const std::vector<Replica>& replicas = slab.replicas();
  const bool any_drains =
      std::any_of(replicas.begin(), replicas.end(),
                  [&donors](const Replica& replica) { return donors[replica.donor].draining; });
  if (!any_drains && replicas.size() <= wanted) return std::nullopt;
  for (auto replica = replicas.rbegin(); replica != replicas.rend(); ++replica) {
    if (any_drains && !donors[replica->donor].draining) continue;
    const size_t live = slab.live() - (replica->state == ReplicaState::kLive ? 1 : 0);
    if (live >= wanted) return replica->donor;
  }
  return std::nullopt;
}

}  // namespace rocegw::far
