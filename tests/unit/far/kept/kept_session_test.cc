// SPDX-License-Identifier: Apache-2.0
// Dispatcher of a session that outlives its process: when the placement is saved, and how another
// process continues with it. Donors have no connections here: nothing is transferred.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kSlab = 1 << 20;
constexpr uint64_t kPage = Slab::kPageBytes;

class KeptSession : public ::testing::Test {
 protected:
  KeptSession() {
    settings_.donors = {{"a", "1"}, {"b", "2"}};
    settings_.tenant = "default";
    settings_.slabs = 2;
    settings_.replicas = 2;
    settings_.merge.slab_bytes = kSlab;
    settings_.merge.most_bytes = kSlab;
    settings_.connect_timeout_ms = 100000;
    settings_.timeout_ms = 100000;
    settings_.save_placement = [this](const std::string& text) {
      if (!can_save_) return Status(ENOSPC, "no room");
      saves_++;
      saved_ = *DecodePlacement(text);
      return OkStatus();
    };
    Begin();
  }

  void Begin() {
    dispatcher_ = std::make_unique<Dispatcher>(settings_, memory_, nullptr, [] {});
  }
  void Connect(uint32_t donor, bool continued = false) {
    Welcome welcome;
    welcome.lease_seconds = 15;
    welcome.proof = {continued ? donor + 1 : donor + 11, 100 + donor};
    welcome.continued = continued;
    dispatcher_->LinkUp(donor, nullptr, welcome);
  }
  void Place(uint32_t slab, uint32_t donor) {
    Replica replica;
    replica.donor = donor;
    replica.lease = 10 * slab + donor + 1;
    dispatcher_->AddReplica(slab, replica);
  }
  // As an earlier process has left it: both slabs at both donors, one page of each is in use.
  void ContinueBoth() {
    Placement kept;
    kept.tenant = "default";
    kept.slab_bytes = kSlab;
    kept.donors = {{"a", "1", "", "", 1, 100}, {"b", "2", "", "", 2, 101}};
    kept.slabs.resize(2);
    for (Placement::Slab& slab : kept.slabs)
      slab.replicas = {{0, 1, 0, 0, true}, {1, 2, 0, 0, true}};
    dispatcher_->Continue(kept, {0, 1}, {{0, kPage}, {kSlab, kSlab + kPage}});
  }
  Slab& SlabOf(uint32_t number) { return dispatcher_->slabs()[number]; }

  Settings settings_;
  RegisteredMemory memory_;
  Placement saved_;
  int saves_ = 0;
  bool can_save_ = true;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(KeptSession, AFlushSavesThePlacementThatItDependsOn) {
  Connect(0);
  Connect(1);
  Place(0, 0);
  Place(0, 1);
  Place(1, 1);
  EXPECT_FALSE(dispatcher_->IsPlacementSaved());
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  EXPECT_TRUE(dispatcher_->IsPlacementSaved());
  ASSERT_EQ(saved_.donors.size(), 2u);
  EXPECT_EQ(saved_.donors[1], (Placement::Donor{"b", "2", "", "", 12, 101}));
  ASSERT_EQ(saved_.slabs.size(), 2u);
  EXPECT_EQ(saved_.slabs[0].replicas.size(), 2u);
  EXPECT_EQ(saved_.slabs[1].replicas, (std::vector<Placement::Replica>{{1, 12, 0, 0, true}}));

  // Writes go on without the first donor, whose memory grows old.
  dispatcher_->FailLink(0, false);
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  ASSERT_EQ(saved_.donors.size(), 1u);
  EXPECT_EQ(saved_.donors[0].host, "b");
  EXPECT_EQ(saved_.slabs[0].replicas, (std::vector<Placement::Replica>{{0, 2, 0, 0, true}}));
}

TEST_F(KeptSession, AFlushWithoutAChangeSavesNothing) {
  Connect(0);
  Place(0, 0);
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  EXPECT_EQ(saves_, 1);
}

TEST_F(KeptSession, AFlushFailsAsLongAsThePlacementCannotBeSaved) {
  Connect(0);
  Place(0, 0);
  can_save_ = false;
  EXPECT_EQ(dispatcher_->FlushAndWait(), -EIO);
  EXPECT_EQ(dispatcher_->FlushAndWait(), -EIO);
  can_save_ = true;
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
}

TEST_F(KeptSession, AFlushFailsOnceAfterPagesWereLostAndThePlacementNamesThem) {
  Connect(0);
  Place(0, 0);
  SlabOf(0).WriteSent(kPage, 3 * kPage);
  dispatcher_->FailLink(0, false);
  EXPECT_EQ(dispatcher_->FlushAndWait(), -EIO);
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  EXPECT_TRUE(saved_.donors.empty());
  EXPECT_EQ(saved_.slabs[0].lost, (std::vector<Placement::Range>{{kPage, 3 * kPage}}));
}

TEST_F(KeptSession, AReplicaThatIsStillRestoredIsNotWhole) {
  Connect(0);
  Connect(1);
  Place(0, 0);
  SlabOf(0).WriteSent(0, kPage);
  Place(0, 1);
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  ASSERT_EQ(saved_.slabs[0].replicas.size(), 2u);
  EXPECT_TRUE(saved_.slabs[0].replicas[0].whole);
  EXPECT_FALSE(saved_.slabs[0].replicas[1].whole);
}

TEST_F(KeptSession, TheNextProcessContinuesByProofAndOneReplicaOfEachSlabIsLive) {
  ContinueBoth();
  EXPECT_TRUE(dispatcher_->IsSuspended());
  for (uint32_t donor = 0; donor < 2; donor++) {
    const Hello hello = dispatcher_->HelloFor(donor);
    EXPECT_EQ(hello.earlier, (SessionProof{donor + 1, 100 + donor}));
    EXPECT_FALSE(hello.ends_earlier);
    Connect(donor, true);
  }
  EXPECT_FALSE(dispatcher_->IsSuspended());
  EXPECT_TRUE(dispatcher_->IsAgreeing());
  EXPECT_EQ(SlabOf(0).live(), 1u);
  EXPECT_EQ(SlabOf(0).agreeing(), 1u);
  // Until they agree, each of them has what was synced.
  EXPECT_EQ(dispatcher_->SavePlacement(), 0);
  EXPECT_TRUE(saved_.slabs[0].replicas[0].whole && saved_.slabs[0].replicas[1].whole);
}

TEST_F(KeptSession, ThePlacementStaysAsItIsUntilADonorHasAnswered) {
  ContinueBoth();
  for (int time = 0; time < 10; time++) dispatcher_->Refused(0);
  EXPECT_EQ(dispatcher_->SavePlacement(), -EAGAIN);
  EXPECT_EQ(saves_, 0);
  EXPECT_EQ(SlabOf(0).replicas().size(), 2u);
}

TEST_F(KeptSession, ADonorWhoseHostRefusesIsLostWhenAnotherOneHasAnswered) {
  ContinueBoth();
  Connect(1, true);
  for (int time = 0; time < 2; time++) dispatcher_->Refused(0);
  EXPECT_TRUE(dispatcher_->IsSuspended());
  dispatcher_->Refused(0);
  EXPECT_FALSE(dispatcher_->IsSuspended());
  EXPECT_FALSE(dispatcher_->IsAgreeing());
  EXPECT_EQ(SlabOf(0).ForRead(0)->donor, 1u);
  EXPECT_EQ(SlabOf(0).lost_pages(), 0u);
}

TEST_F(KeptSession, ADonorThatDoesNotKnowTheSessionHasLostItsReplicas) {
  ContinueBoth();
  Connect(0, false);
  Connect(1, false);
  EXPECT_TRUE(SlabOf(0).IsLost(0, kPage));
  EXPECT_FALSE(SlabOf(0).IsLost(kPage, 2 * kPage));
  // New memory is not taken for the lost pages.
  Place(0, 0);
  EXPECT_TRUE(SlabOf(0).IsLost(0, kPage));
  // The program is told by its reads, not by a flush of other data.
  dispatcher_->AcceptLosses();
  EXPECT_EQ(dispatcher_->FlushAndWait(), 0);
  EXPECT_EQ(saved_.slabs[0].lost, (std::vector<Placement::Range>{{0, kPage}}));
}

TEST_F(KeptSession, DataOfASlabWithoutReplicasIsLost) {
  Placement kept;
  kept.slabs.resize(2);
  kept.slabs[1].lost = {{kPage, 2 * kPage}};
  dispatcher_->Continue(kept, {}, {{0, kPage}});
  EXPECT_TRUE(SlabOf(0).IsLost(0, kPage));
  EXPECT_TRUE(SlabOf(1).IsLost(kPage, 2 * kPage));
  EXPECT_EQ(SlabOf(1).lost_pages(), 1u);
}

TEST_F(KeptSession, AnEarlierProcessThatLeftNothingOfUseEnds) {
  Placement kept;
  kept.donors = {{"b", "2", "", "", 2, 101}};
  dispatcher_->EndEarlier(kept, {1});
  const Hello hello = dispatcher_->HelloFor(1);
  EXPECT_EQ(hello.earlier, (SessionProof{2, 101}));
  EXPECT_TRUE(hello.ends_earlier);
}

}  // namespace
}  // namespace rocegw::far
