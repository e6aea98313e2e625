// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/slab.h"

#include <gtest/gtest.h>

#include "gateway/far/placement/choose_donor.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Slab::kPageBytes;

Replica Of(uint32_t donor) {
  Replica replica;
  replica.donor = donor;
  return replica;
}

TEST(Slab, ReplicaOfAnEmptySlabIsLiveAtOnce) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.Add(Of(1));
  EXPECT_EQ(slab.live(), 2u);
}

TEST(Slab, ReplicaOfASlabWithDataIsReadOnlyWhenItIsRestored) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(0, kPage);
  const uint64_t serial = slab.Add(Of(1));
  for (uint64_t turn = 0; turn < 4; turn++) EXPECT_EQ(slab.ForRead(turn)->donor, 0u);
  slab.Restored(serial);
  EXPECT_NE(slab.ForRead(0)->donor, slab.ForRead(1)->donor);
}

TEST(Slab, LosesNothingWhileAReplicaIsLive) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.Add(Of(1));
  slab.WriteSent(0, 16 * kPage);
  EXPECT_TRUE(slab.DonorLost(0));
  EXPECT_FALSE(slab.IsLost(0, 16 * kPage));
  EXPECT_EQ(slab.generation(), 0u);
}

TEST(Slab, LosesExactlyTheWrittenPagesWithTheLastLiveReplica) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(3 * kPage + 7, 5 * kPage);
  EXPECT_TRUE(slab.DonorLost(0));
  EXPECT_EQ(slab.ForRead(0), nullptr);
  EXPECT_EQ(slab.lost_pages(), 2u);
  EXPECT_FALSE(slab.IsLost(0, 3 * kPage));
  EXPECT_TRUE(slab.IsLost(4 * kPage, 4 * kPage + 1));
  EXPECT_FALSE(slab.IsLost(5 * kPage, 16 * kPage));
  EXPECT_EQ(slab.generation(), 1u);
}

TEST(Slab, ReplicaThatIsBeingRestoredServesWhatIsWrittenAfterTheLastLiveOneIsLost) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(0, 2 * kPage);
  const uint64_t serial = slab.Add(Of(1));
  EXPECT_TRUE(slab.DonorLost(0));
  EXPECT_EQ(slab.lost_pages(), 2u);
  EXPECT_EQ(slab.FindRestoring(serial), nullptr);
  ASSERT_NE(slab.ForRead(0), nullptr);
  EXPECT_EQ(slab.ForRead(0)->donor, 1u);
  slab.WriteSent(0, kPage);
  slab.WriteDone(0, kPage);
  EXPECT_FALSE(slab.IsLost(0, kPage));
  EXPECT_TRUE(slab.IsLost(kPage, 2 * kPage));
}

TEST(Slab, CopyToAReplicaThatWasRemovedDoesNotGoOnToALaterOneOfTheSameDonor) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(0, kPage);
  const uint64_t before = slab.Add(Of(1));
  EXPECT_NE(slab.FindRestoring(before), nullptr);
  slab.DonorLost(1);
  const uint64_t after = slab.Add(Of(1));
  EXPECT_EQ(slab.FindRestoring(before), nullptr);
  slab.Restored(before);
  EXPECT_EQ(slab.live(), 1u);
  slab.Restored(after);
  EXPECT_EQ(slab.live(), 2u);
}

TEST(Slab, LostPageIsBackOnceItIsWrittenWhole) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(0, 2 * kPage);
  slab.DonorLost(0);
  slab.Add(Of(1));
  EXPECT_TRUE(slab.LeavesLost(0, kPage + 1));
  EXPECT_FALSE(slab.LeavesLost(0, kPage));
  slab.WriteSent(0, kPage);
  EXPECT_TRUE(slab.IsLost(0, kPage));  // until the write has succeeded
  slab.WriteDone(0, kPage);
  EXPECT_FALSE(slab.IsLost(0, kPage));
  EXPECT_TRUE(slab.IsLost(kPage, 2 * kPage));
}

TEST(Slab, FindsWrittenStretches) {
  Slab slab(16 * kPage);
  slab.Add(Of(0));
  slab.WriteSent(2 * kPage, 6 * kPage);
  auto stretch = slab.NextWritten(0, 3 * kPage);
  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->begin, 2 * kPage);
  EXPECT_EQ(stretch->end, 5 * kPage);
  stretch = slab.NextWritten(stretch->end, 3 * kPage);
  ASSERT_TRUE(stretch);
  EXPECT_EQ(stretch->end, 6 * kPage);
  EXPECT_FALSE(slab.NextWritten(stretch->end, kPage));
}

TEST(ChooseDonor, TakesTheEmptiestThatHoldsNoReplica) {
  Slab slab(16 * kPage);
  slab.Add(Of(1));
  EXPECT_EQ(ChooseDonor({{true, 100}, {true, 300}, {true, 200}, {false, 400}}, slab, 100), 2u);
  EXPECT_EQ(ChooseDonor({{true, 100}, {true, 300}, {true, 100}}, slab, 100), 0u);
  EXPECT_EQ(ChooseDonor({{true, 99}, {true, 300}}, slab, 100), std::nullopt);
}

TEST(Slab, DroppingAReplicaLosesNothingWhileAnotherHasTheData) {
  Slab slab(4 * kPage);
  slab.Add(Of(1));
  slab.WriteSent(0, kPage);
  slab.WriteDone(0, kPage);
  slab.Restored(slab.Add(Of(2)));
  const uint32_t generation = slab.generation();
  slab.Drop(1);
  EXPECT_FALSE(slab.Has(1));
  EXPECT_EQ(slab.live(), 1u);
  EXPECT_EQ(slab.generation(), generation);
  EXPECT_FALSE(slab.IsLost(0, kPage));
}

}  // namespace
}  // namespace rocegw::far
