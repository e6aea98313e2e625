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

bool NeedsReplica(const std::vector<bool>& draining, const Slab& slab, uint32_t replicas) {
  const std::vector<Replica>& all = slab.replicas();
  const auto staying = std::count_if(
      all.begin(), all.end(), [&](const Replica& replica) { return !draining[replica.donor]; });
  return static_cast<size_t>(staying) < replicas && all.size() <= replicas;
}

std::vector<Replica> ReplicasToDrop(const std::vector<bool>& draining, const Slab& slab,
                                    uint32_t replicas) {
  size_t live = slab.live();
  std::vector<Replica> dropped;
  for (const Replica& replica : slab.replicas()) {
    if (!draining[replica.donor]) continue;
    const bool is_live = replica.state == ReplicaState::kLive;
    if (is_live ? live <= replicas : live == 0) continue;
    live -= is_live ? 1 : 0;
    dropped.push_back(replica);
  }
  return dropped;
}

}  // namespace rocegw::far
