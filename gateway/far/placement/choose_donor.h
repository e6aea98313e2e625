// SPDX-License-Identifier: Apache-2.0
// Choice of the donor for a new replica, and of replicas that go. Pure.
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

// Returns whether the slab should get another replica: at most one more than wanted, while
// replicas leave draining donors.
bool LacksReplica(const std::vector<DonorOffer>& donors, const Slab& slab, uint32_t wanted);
// Returns the donor whose replica the slab can do without: one that drains, or, when none does and
// the slab has more replicas than wanted, the newest. As many as wanted stay live without it.
// nullopt: there is none.
std::optional<uint32_t> ChooseDropped(const std::vector<DonorOffer>& donors, const Slab& slab,
                                      uint32_t wanted);

}  // namespace rocegw::far
