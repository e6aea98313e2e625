// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/choose_donor.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

constexpr uint64_t kSlab = 4096;

Slab SlabAt(std::initializer_list<uint32_t> donors) {
  Slab slab(kSlab);
  for (const uint32_t donor : donors) {
    Replica replica;
    replica.donor = donor;
    slab.Add(replica);
  }
  return slab;
}

DonorOffer Offer(uint64_t free_bytes, uint32_t domain) {
  DonorOffer offer;
  offer.usable = true;
  offer.free_bytes = free_bytes;
  offer.domain = domain;
  return offer;
}

TEST(ChooseDonor, PrefersAnotherFailureDomainToMoreRoom) {
  const std::vector<DonorOffer> offers{Offer(kSlab, 0), Offer(9 * kSlab, 0), Offer(kSlab, 1)};
  EXPECT_EQ(ChooseDonor(offers, SlabAt({0}), kSlab), 2u);
  EXPECT_EQ(ChooseDonor(offers, SlabAt({}), kSlab), 1u);
}

TEST(ChooseDonor, TakesADonorOfTheSameDomainIfThereIsNoOther) {
  const std::vector<DonorOffer> offers{Offer(kSlab, 0), Offer(kSlab, 0), Offer(kSlab - 1, 1)};
  EXPECT_EQ(ChooseDonor(offers, SlabAt({0}), kSlab), 1u);
}

TEST(ChooseDonor, GivesNothingToDrainingDonors) {
  std::vector<DonorOffer> offers{Offer(kSlab, 0), Offer(9 * kSlab, 1)};
  offers[1].draining = true;
  EXPECT_EQ(ChooseDonor(offers, SlabAt({0}), kSlab), std::nullopt);
}

TEST(ChooseDonor, AReplicaThatLeavesDoesNotCountForItsDomain) {
  std::vector<DonorOffer> offers{Offer(kSlab, 0), Offer(9 * kSlab, 0), Offer(kSlab, 1)};
  offers[0].draining = true;
  EXPECT_EQ(ChooseDonor(offers, SlabAt({0}), kSlab), 1u);
}

}  // namespace
}  // namespace rocegw::far
