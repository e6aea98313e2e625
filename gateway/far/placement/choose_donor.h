// SPDX-License-Identifier: Apache-2.0
// Choice of the donor for a new replica. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/far/placement/slab.h"

namespace rocegw::far {

struct DonorOffer {
  bool usable = false;      // connected
  uint64_t free_bytes = 0;  // as the donor last said, less what was asked of it since
  uint32_t domain = 0;      // failure domain
  bool draining = false;    // takes no replica, and loses those that it has
};

// Returns the usable donor with the most free bytes, among those with room for the slab and without
// a replica of the slab. Donors of failure domains that have no replica come first. Of equal donors
// it returns the first; nullopt: no donor fits.
std::optional<uint32_t> ChooseDonor(const std::vector<DonorOffer>& donors, const Slab& slab,
                                    uint64_t slab_bytes);

// Moves of replicas away from draining donors go one after the other, so that a slab never has more
// than one replica above `replicas`, nor fewer than it had. `draining`: by donor.
// Whether the slab needs one more replica, because it lacks one or because one is to move.
bool NeedsReplica(const std::vector<bool>& draining, const Slab& slab, uint32_t replicas);
// Returns the replicas that can go: those of draining donors that have not all data yet while
// another replica has, and those of draining donors without which enough are live.
std::vector<Replica> ReplicasToDrop(const std::vector<bool>& draining, const Slab& slab,
                                    uint32_t replicas);

}  // namespace rocegw::far
