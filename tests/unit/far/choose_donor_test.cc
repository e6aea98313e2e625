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

Slab WrittenSlabAt(std::initializer_list<uint32_t> donors) {
  Slab slab = SlabAt(donors);
  slab.WriteSent(0, kSlab);
  return slab;
}

void AddTo(Slab& slab, uint32_t donor) {
  Replica replica;
  replica.donor = donor;
  slab.Add(replica);
}

TEST(ChooseDropped, TwoDrainsAtOnceEnd) {
  std::vector<DonorOffer> offers(4, Offer(kSlab, 0));
  Slab slab = WrittenSlabAt({0, 1});
  offers[0].draining = offers[1].draining = true;
  // Both replicas move, one after the other, and two are always live.
  for (const uint32_t next : {2u, 3u}) {
    ASSERT_TRUE(LacksReplica(offers, slab, 2));
    EXPECT_EQ(ChooseDropped(offers, slab, 2), std::nullopt);
    AddTo(slab, next);
    EXPECT_FALSE(LacksReplica(offers, slab, 2));
    EXPECT_EQ(ChooseDropped(offers, slab, 2), std::nullopt) << "the new replica is not live yet";
    slab.Restored(slab.replicas().back().serial);
    const auto dropped = ChooseDropped(offers, slab, 2);
    ASSERT_TRUE(dropped);
    EXPECT_LT(*dropped, 2u);
    slab.Drop(*dropped);
    EXPECT_EQ(slab.live(), 2u);
  }
  EXPECT_TRUE(slab.Has(2) && slab.Has(3));
  EXPECT_FALSE(LacksReplica(offers, slab, 2));
  EXPECT_EQ(ChooseDropped(offers, slab, 2), std::nullopt);
}

TEST(ChooseDropped, ADrainThatIsTakenBackLeavesNoReplicaTooMany) {
  std::vector<DonorOffer> offers(3, Offer(kSlab, 0));
  Slab slab = WrittenSlabAt({0, 1});
  offers[0].draining = true;
  AddTo(slab, 2);
  EXPECT_EQ(ChooseDropped(offers, slab, 2), std::nullopt);
  offers[0].draining = false;
  EXPECT_EQ(ChooseDropped(offers, slab, 2), 2u) << "the copy has not ended";
  slab.Restored(slab.replicas().back().serial);
  EXPECT_EQ(ChooseDropped(offers, slab, 2), 2u);
  slab.Drop(2);
  EXPECT_EQ(ChooseDropped(offers, slab, 2), std::nullopt);
}

}  // namespace
}  // namespace rocegw::far
