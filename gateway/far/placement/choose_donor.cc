// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/choose_donor.h"

namespace rocegw::far {

std::optional<uint32_t> ChooseDonor(const std::vector<DonorOffer>& donors, const Slab& slab,
                                    uint64_t slab_bytes) {
  std::optional<uint32_t> best;
  for (uint32_t donor = 0; donor < donors.size(); donor++) {
    const DonorOffer& offer = donors[donor];
    if (!offer.usable || offer.free_bytes < slab_bytes || slab.Has(donor)) continue;
    if (!best || offer.free_bytes > donors[*best].free_bytes) best = donor;
  }
  return best;
}

}  // namespace rocegw::far
