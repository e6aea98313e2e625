// SPDX-License-Identifier: Apache-2.0
// Slab with a disk copy.
#include <gtest/gtest.h>

#include "gateway/far/placement/slab.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Slab::kPageBytes;

Replica Of(uint32_t donor) {
  Replica replica;
  replica.donor = donor;
  return replica;
}

class SlabDisk : public testing::Test {
 protected:
  SlabDisk() { slab_.Add(Of(0)); }
  // A write that the disk copy got.
  void Write(uint64_t page, uint64_t pages = 1) {
    slab_.WriteSent(page * kPage, (page + pages) * kPage);
    EXPECT_TRUE(slab_.DiskWritten(page * kPage, (page + pages) * kPage, slab_.disk_epoch(), true));
  }
  bool IsLost(uint64_t page) { return slab_.IsLost(page * kPage, (page + 1) * kPage); }

  Slab slab_{16 * kPage, true};
};

TEST_F(SlabDisk, LosesNothingThatTheDiskHas) {
  Write(0, 4);
  EXPECT_TRUE(slab_.DonorLost(0));
  EXPECT_EQ(slab_.lost_pages(), 0u);
  EXPECT_TRUE(slab_.HasData(3 * kPage, 4 * kPage));
  EXPECT_FALSE(slab_.HasData(4 * kPage, 5 * kPage));
  EXPECT_EQ(slab_.generation(), 1u);
}

TEST_F(SlabDisk, LosesExactlyWhatTheDiskLacks) {
  Write(0, 4);
  slab_.WriteSent(kPage, 2 * kPage);
  slab_.DiskSkipped(kPage, 2 * kPage);
  slab_.WriteSent(3 * kPage, 4 * kPage);
  EXPECT_FALSE(slab_.DiskWritten(3 * kPage, 4 * kPage, slab_.disk_epoch(), false));
  EXPECT_EQ(slab_.off_disk_pages(), 2u);
  EXPECT_FALSE(slab_.IsDiskWhole());
  slab_.DonorLost(0);
  EXPECT_FALSE(IsLost(0));
  EXPECT_TRUE(IsLost(1));
  EXPECT_FALSE(IsLost(2));
  EXPECT_TRUE(IsLost(3));
  EXPECT_EQ(slab_.off_disk_pages(), 0u);
  EXPECT_EQ(slab_.lost_pages(), 2u);
  EXPECT_FALSE(slab_.IsOnDisk(0, 2 * kPage));
  EXPECT_TRUE(slab_.IsOnDisk(2 * kPage, 3 * kPage));
  // A lost page is not on the disk either, until it is written whole.
  EXPECT_FALSE(slab_.IsDiskWhole());
  Write(1);
  EXPECT_FALSE(slab_.IsDiskWhole());
  Write(3);
  EXPECT_TRUE(slab_.IsDiskWhole());
}

TEST_F(SlabDisk, WriteThatIsOlderThanASkippedOneDoesNotMakeThePageGood) {
  slab_.WriteSent(0, kPage);
  const uint32_t epoch = slab_.disk_epoch();
  slab_.DiskSkipped(0, kPage);
  EXPECT_FALSE(slab_.DiskWritten(0, kPage, epoch, true));
  EXPECT_EQ(slab_.off_disk_pages(), 1u);
  slab_.DonorLost(0);
  EXPECT_TRUE(IsLost(0));
  EXPECT_FALSE(slab_.DiskWritten(0, kPage, epoch, true));
  EXPECT_TRUE(IsLost(0));
}

TEST_F(SlabDisk, LaterWholeWriteMakesThePageGood) {
  slab_.WriteSent(0, kPage);
  slab_.DiskSkipped(0, kPage);
  EXPECT_FALSE(slab_.DiskWritten(0, kPage / 2, slab_.disk_epoch(), true));
  EXPECT_TRUE(slab_.DiskWritten(0, kPage, slab_.disk_epoch(), true));
  EXPECT_TRUE(slab_.IsDiskWhole());
  slab_.DonorLost(0);
  EXPECT_FALSE(IsLost(0));
}

TEST_F(SlabDisk, LostPageIsGoodAgainWhenTheDiskGetsItWhole) {
  slab_.WriteSent(0, kPage);
  slab_.DiskSkipped(0, kPage);
  slab_.DonorLost(0);
  EXPECT_TRUE(slab_.DiskWritten(0, kPage, slab_.disk_epoch(), true));
  EXPECT_FALSE(IsLost(0));
  EXPECT_TRUE(slab_.HasData(0, kPage));
}

TEST_F(SlabDisk, WriteThatFailsWithoutReplicasLosesItsPages) {
  Write(0, 2);
  slab_.DonorLost(0);
  EXPECT_FALSE(slab_.DiskWritten(0, kPage, slab_.disk_epoch(), false));
  EXPECT_TRUE(IsLost(0));
  EXPECT_FALSE(IsLost(1));
}

TEST_F(SlabDisk, NewReplicaIsRestoredFromTheDisk) {
  Write(0);
  slab_.DonorLost(0);
  const uint64_t serial = slab_.Add(Of(1));
  EXPECT_EQ(slab_.live(), 0u);
  EXPECT_EQ(slab_.NextWritten(0, kPage)->begin, 0u);
  slab_.Restored(serial);
  EXPECT_EQ(slab_.live(), 1u);
}

TEST_F(SlabDisk, ReplicaThatIsBeingRestoredStaysWhenTheLastLiveOneIsLost) {
  Write(0);
  slab_.Add(Of(1));
  slab_.DonorLost(0);
  EXPECT_TRUE(slab_.Has(1));
  EXPECT_EQ(slab_.live(), 0u);
}

TEST_F(SlabDisk, DataFromBeforeTheSessionIsOnTheDiskOnly) {
  Slab slab(16 * kPage, true);
  slab.Recovered(2 * kPage, 4 * kPage);
  EXPECT_TRUE(slab.HasData(3 * kPage, 4 * kPage));
  slab.Add(Of(0));
  EXPECT_EQ(slab.live(), 0u);
}

TEST_F(SlabDisk, LackingPagesAreLostOrOnReplicasOnly) {
  Slab slab(16 * kPage, true);
  slab.Recovered(0, 4 * kPage);
  slab.RecoveredLost(kPage, 2 * kPage);
  EXPECT_TRUE(slab.IsLost(kPage, 2 * kPage));
  EXPECT_FALSE(slab.IsLost(2 * kPage, 4 * kPage));
  slab.WriteSent(5 * kPage, 6 * kPage);
  slab.DiskSkipped(5 * kPage, 6 * kPage);
  const auto lost = slab.NextLacking(0, false);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->begin, kPage);
  EXPECT_EQ(lost->end, 2 * kPage);
  EXPECT_FALSE(slab.NextLacking(lost->end, false));
  const auto off_disk = slab.NextLacking(lost->end, true);
  ASSERT_TRUE(off_disk);
  EXPECT_EQ(off_disk->begin, 5 * kPage);
  EXPECT_EQ(off_disk->end, 6 * kPage);
}

TEST_F(SlabDisk, PagesThatMayBeOtherThanZeroAreWrittenOrLost) {
  Write(2);
  slab_.WriteSent(5 * kPage, 6 * kPage);
  slab_.DiskSkipped(5 * kPage, 6 * kPage);
  slab_.DonorLost(0);
  EXPECT_EQ(slab_.NextData(0, kPage)->begin, 2 * kPage);
  EXPECT_EQ(slab_.NextData(3 * kPage, kPage)->begin, 5 * kPage);
  EXPECT_EQ(slab_.NextData(6 * kPage, kPage), std::nullopt);
}

TEST_F(SlabDisk, FailedFlushIsMadeGoodFromTheReplicas) {
  Write(0, 3);
  slab_.DiskFlushFailed();
  EXPECT_EQ(slab_.off_disk_pages(), 3u);
  EXPECT_EQ(slab_.NextOffDisk(0, 2 * kPage)->end, 2 * kPage);
  EXPECT_TRUE(slab_.DiskWritten(0, 3 * kPage, slab_.disk_epoch(), true));
  EXPECT_EQ(slab_.NextOffDisk(0, kPage), std::nullopt);
}

TEST_F(SlabDisk, FailedFlushWithoutReplicasIsMadeGoodWhenThereIsOne) {
  Write(0, 3);
  slab_.DonorLost(0);
  slab_.DiskFlushFailed();
  EXPECT_EQ(slab_.lost_pages(), 0u);
  EXPECT_FALSE(slab_.IsDiskWhole());
  slab_.Restored(slab_.Add(Of(1)));
  EXPECT_EQ(slab_.off_disk_pages(), 3u);
}

}  // namespace
}  // namespace rocegw::far
