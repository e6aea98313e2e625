// SPDX-License-Identifier: Apache-2.0
// Placement of a session that outlives its process, and replicas of a slab that a later process
// takes over.
#include "gateway/far/placement/placement.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "gateway/far/placement/slab.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Slab::kPageBytes;
constexpr uint64_t kSlab = 16 * kPage;

Placement Example() {
  Placement placement;
  placement.tenant = "default";
  placement.slab_bytes = kSlab;
  placement.donors = {{"10.0.0.1", "7475", "rack-a", "gateways/g/donors/d", 3, 0x1234567890abcdef},
                      {"host", "7485", "", "", 1, 7}};
  placement.slabs.resize(3);
  placement.slabs[0].replicas = {{0, 5, 0x7f0000001000, 9, true}, {1, 6, 0x7f0000002000, 8, false}};
  placement.slabs[1].replicas = {{1, 7, 0x7f0000003000, 4, true}};
  placement.slabs[1].lost = {{0, kPage}, {3 * kPage, 5 * kPage}};
  placement.slabs[2].lost = {{0, kSlab}};
  return placement;
}

TEST(PlacementText, IsReadAsItWasWritten) {
  const auto read = DecodePlacement(Encode(Example()));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, Example());
}

TEST(PlacementText, IsRefusedWhenItIsCutOffOrLonger) {
  const std::string text = Encode(Example());
  for (size_t length = 0; length < text.size(); length++) {
    EXPECT_FALSE(DecodePlacement(std::string_view(text).substr(0, length))) << length;
  }
  EXPECT_FALSE(DecodePlacement(text + '\0'));
}

TEST(PlacementText, IsRefusedWhenItContradictsItself) {
  const auto refused = [](auto change) {
    Placement placement = Example();
    change(placement);
    return !DecodePlacement(Encode(placement));
  };
  EXPECT_FALSE(refused([](Placement&) {}));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[0].replicas[0].donor = 2; }));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[0].replicas[1].donor = 0; }));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[1].replicas[0].whole = false; }));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[1].lost[0].end = kPage + 1; }));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[1].lost[1].begin = 0; }));
  EXPECT_TRUE(refused([](Placement& p) { p.slabs[2].lost[0].end = 2 * kSlab; }));
  EXPECT_TRUE(refused([](Placement& p) { p.donors[0].session = 0; }));
  EXPECT_TRUE(refused([](Placement& p) { p.donors[0].host.clear(); }));
  EXPECT_TRUE(refused([](Placement& p) { p.slab_bytes = 0; }));
}

Replica Kept(uint32_t donor, ReplicaState state = ReplicaState::kLive) {
  Replica replica;
  replica.donor = donor;
  replica.state = state;
  return replica;
}

TEST(KeptSlab, OneReplicaServesUntilTheOthersAgreeWithIt) {
  Slab slab(kSlab);
  slab.AddKept(Kept(0));
  slab.AddKept(Kept(1));
  slab.Recovered(0, kPage);
  EXPECT_EQ(slab.live(), 1u);
  EXPECT_EQ(slab.agreeing(), 1u);
  for (uint64_t turn = 0; turn < 4; turn++) EXPECT_EQ(slab.ForRead(turn)->donor, 0u);
  const uint64_t serial = slab.replicas()[1].serial;
  ASSERT_NE(slab.FindRestoring(serial), nullptr);
  slab.Restored(serial);
  EXPECT_EQ(slab.live(), 2u);
  EXPECT_EQ(slab.agreeing(), 0u);
}

TEST(KeptSlab, AnAgreeingReplicaTakesThePlaceOfTheLiveOneAndCopiesBeginAnew) {
  Slab slab(kSlab);
  slab.AddKept(Kept(0));
  slab.AddKept(Kept(1));
  slab.AddKept(Kept(2));
  slab.Recovered(0, kPage);
  const uint64_t second = slab.replicas()[1].serial;
  const uint64_t third = slab.replicas()[2].serial;
  slab.DonorLost(0);
  EXPECT_EQ(slab.lost_pages(), 0u);
  EXPECT_EQ(slab.ForRead(0)->donor, 1u);
  EXPECT_EQ(slab.agreeing(), 1u);
  EXPECT_EQ(slab.FindRestoring(second), nullptr);
  EXPECT_EQ(slab.FindRestoring(third), nullptr) << "it has pages of the replica that was lost";
  slab.DonorLost(1);
  EXPECT_EQ(slab.ForRead(0)->donor, 2u);
  slab.DonorLost(2);
  EXPECT_EQ(slab.lost_pages(), 1u);
}

TEST(KeptSlab, AReplicaThatWasIncompleteServesNothing) {
  Slab slab(kSlab);
  slab.AddKept(Kept(0));
  slab.AddKept(Kept(1, ReplicaState::kRestoring));
  slab.Recovered(0, kPage);
  EXPECT_EQ(slab.agreeing(), 0u);
  slab.DonorLost(0);
  EXPECT_TRUE(slab.IsLost(0, kPage));
}

}  // namespace
}  // namespace rocegw::far
