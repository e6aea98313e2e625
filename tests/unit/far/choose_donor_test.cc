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

std::vector<uint32_t> DonorsOf(const std::vector<Replica>& replicas) {
  std::vector<uint32_t> donors;
  for (const Replica& replica : replicas) donors.push_back(replica.donor);
  return donors;
}

using Draining = std::vector<bool>;
using Donors = std::vector<uint32_t>;

TEST(Moves, OneReplicaAfterTheOtherLeavesDrainingDonors) {
  const Draining draining{true, true, false, false};
  Slab slab = SlabAt({0, 1});
  slab.WriteSent(0, kSlab);
  EXPECT_TRUE(NeedsReplica(draining, slab, 2));
  EXPECT_EQ(DonorsOf(ReplicasToDrop(draining, slab, 2)), Donors{});
  Replica next;
  next.donor = 2;
  slab.Add(next);
  EXPECT_FALSE(NeedsReplica(draining, slab, 2)) << "a move is under way";
  EXPECT_EQ(DonorsOf(ReplicasToDrop(draining, slab, 2)), Donors{}) << "the new one lacks data";
  slab.Restored(2);
  EXPECT_EQ(DonorsOf(ReplicasToDrop(draining, slab, 2)), Donors{0});
  slab.Drop(0);
  EXPECT_TRUE(NeedsReplica(draining, slab, 2));
  next.donor = 3;
  slab.Add(next);
  slab.Restored(3);
  EXPECT_EQ(DonorsOf(ReplicasToDrop(draining, slab, 2)), Donors{1});
  slab.Drop(1);
  EXPECT_FALSE(NeedsReplica(draining, slab, 2));
  EXPECT_EQ(DonorsOf(ReplicasToDrop(draining, slab, 2)), Donors{});
}

TEST(Moves, AReplicaThatIsBeingRestoredLeavesAtOnce) {
  Slab slab = SlabAt({0});
  slab.WriteSent(0, kSlab);
  Replica next;
  next.donor = 1;
  slab.Add(next);
  EXPECT_EQ(DonorsOf(ReplicasToDrop({false, true}, slab, 2)), Donors{1});
  EXPECT_EQ(DonorsOf(ReplicasToDrop({true, false}, slab, 2)), Donors{}) << "it alone has the data";
}

TEST(Moves, TheLastReplicaStaysWhileNoOtherDonorHasRoom) {
  const Slab slab = SlabAt({0, 1});
  EXPECT_EQ(DonorsOf(ReplicasToDrop({true, true}, slab, 2)), Donors{});
  EXPECT_FALSE(NeedsReplica({false, false}, slab, 2));
  EXPECT_TRUE(NeedsReplica({false, false}, SlabAt({0}), 2));
}

}  // namespace
}  // namespace rocegw::far
