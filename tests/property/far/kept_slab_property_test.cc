// SPDX-License-Identifier: Apache-2.0
// A slab whose session is continued by later processes, against a model in which each donor's copy
// is an array of versions by page. The process is killed at random moments, also within a write
// that only some replicas get and while replicas are made equal; donors die or are cut off, so that
// their copies stay and grow old. The file has what the last flush has saved.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/far/placement/placement.h"
#include "gateway/far/placement/slab.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPages = 12;
constexpr uint64_t kPage = Slab::kPageBytes;
constexpr uint32_t kDonors = 4;
constexpr size_t kReplicas = 3;

class Scene {
 public:
  explicit Scene(testing::Random& random)
      : random_(random), slab_(std::make_unique<Slab>(kPages * kPage)) {}

  void Step() {
    switch (random_.Below(8)) {
      case 0:
        AddReplica();
        return;
      case 1:
        if (random_.Below(3) == 0 && !slab_->replicas().empty()) LoseDonor();
        return;
      case 2:
      case 3:
        Write(true);
        return;
      case 4:
      case 5:
        CopyPage();
        return;
      case 6:
        Flush();
        return;
      default:
        Read();
    }
  }

  // Ends the process within a write, and begins another one.
  void Kill() {
    if (random_.Coin()) Write(false);
    slab_ = std::make_unique<Slab>(kPages * kPage);
    copy_.reset();
    bool any = false;
    for (const Placement::Replica& kept : file_.replicas) {
      Replica replica;
      replica.donor = kept.donor;
      replica.lease = kept.lease;
      replica.state = kept.whole ? ReplicaState::kLive : ReplicaState::kRestoring;
      slab_->AddKept(replica);
      any = any || (kept.whole && Knows(kept));
    }
    for (uint64_t page = 0; page < kPages; page++) {
      if (synced_[page] == 0) continue;
      slab_->Recovered(page * kPage, (page + 1) * kPage);
      if (file_.replicas.empty()) slab_->RecoveredLost(page * kPage, (page + 1) * kPage);
    }
    for (const Placement::Range& lost : file_.lost) slab_->RecoveredLost(lost.begin, lost.end);
    for (const Placement::Replica& kept : file_.replicas) {
      if (!Knows(kept)) slab_->DonorLost(kept.donor);
    }
    while (slab_->agreeing() != 0) {
      if (random_.Below(30) == 0) return Kill();
      // Donors die meanwhile; one whole replica is left.
      if (random_.Below(10) == 0 && slab_->live() + slab_->agreeing() > 1) LoseDonor();
      CopyPage();
    }
    for (uint64_t page = 0; page < kPages; page++) {
      const bool was_lost = IsLostInFile(page);
      const bool lost = slab_->IsLost(page * kPage, page * kPage + 1);
      ASSERT_EQ(lost, was_lost || (synced_[page] != 0 && !any)) << "page " << page;
      // Nothing is promised of pages that the file does not know of.
      last_[page] = 0;
      if (lost || synced_[page] == 0) continue;
      const int found = Content(*slab_->ForRead(0))[page];
      ASSERT_GE(found, synced_[page]) << "page " << page;
      last_[page] = found;
    }
    Read();
  }

 private:
  struct Memory {
    uint64_t lease = 0;
    std::vector<int> versions;
  };
  struct CopyInProgress {
    uint64_t replica = 0;
    uint64_t page = 0;
    std::optional<int> read;
  };

  std::vector<int>& Content(const Replica& replica) { return memory_[replica.donor].versions; }
  bool Knows(const Placement::Replica& kept) const {
    const auto found = memory_.find(kept.donor);
    return found != memory_.end() && found->second.lease == kept.lease;
  }
  bool IsLostInFile(uint64_t page) const {
    for (const Placement::Range& lost : file_.lost) {
      if (lost.begin <= page * kPage && page * kPage < lost.end) return true;
    }
    return false;
  }

  void AddReplica() {
    Replica replica;
    replica.donor = static_cast<uint32_t>(random_.Below(kDonors));
    if (slab_->replicas().size() == kReplicas || slab_->Has(replica.donor)) return;
    replica.lease = ++last_lease_;
    // The earlier session at this donor ends. What the memory has means nothing, as after a
    // restart.
    memory_[replica.donor] = {replica.lease, std::vector<int>(kPages, -1)};
    slab_->Add(replica);
  }

  void LoseDonor() {
    const uint32_t donor = slab_->replicas()[random_.Below(slab_->replicas().size())].donor;
    if (random_.Coin()) memory_.erase(donor);  // else it is cut off, and keeps what it has
    slab_->DonorLost(donor);
  }

  void Write(bool ends) {
    if (slab_->live() == 0) return;
    const uint64_t page = random_.Below(kPages);
    const uint64_t end = page + random_.Between(1, kPages - page);
    if (copy_ && copy_->read && page <= copy_->page && copy_->page < end) return;
    version_++;
    slab_->WriteSent(page * kPage, end * kPage);
    for (uint64_t each = page; each < end; each++) {
      for (const Replica& replica : slab_->replicas()) {
        if (ends || random_.Coin()) Content(replica)[each] = version_;
      }
      last_[each] = version_;
    }
    if (ends) slab_->WriteDone(page * kPage, end * kPage);
  }

  void CopyPage() {
    if (!copy_) {
      for (const Replica& replica : slab_->replicas()) {
        if (replica.state == ReplicaState::kRestoring && slab_->agreeing() == 0)
          copy_ = {replica.serial, 0, {}};
        if (replica.state == ReplicaState::kAgreeing) copy_ = {replica.serial, 0, {}};
      }
      if (!copy_) return;
    }
    const Replica* const target = slab_->FindRestoring(copy_->replica);
    if (target == nullptr) {
      copy_.reset();
    } else if (copy_->read) {
      Content(*target)[copy_->page++] = *copy_->read;
      copy_->read.reset();
    } else if (const auto next = slab_->NextWritten(copy_->page * kPage, kPage); next) {
      copy_->page = next->begin / kPage;
      copy_->read = Content(*slab_->ForRead(random_.Bits()))[copy_->page];
    } else {
      slab_->Restored(copy_->replica);
      copy_.reset();
    }
  }

  void Flush() {
    file_ = {};
    for (const Replica& replica : slab_->replicas()) {
      file_.replicas.push_back(
          {replica.donor, replica.lease, 0, 0, replica.state != ReplicaState::kRestoring});
    }
    for (auto lost = slab_->NextLacking(0, false); lost;
         lost = slab_->NextLacking(lost->end, false)) {
      file_.lost.push_back({lost->begin, lost->end});
    }
    synced_ = last_;
    for (uint64_t page = 0; page < kPages; page++) {
      if (slab_->IsLost(page * kPage, page * kPage + 1)) synced_[page] = 0;
    }
  }

  void Read() {
    for (uint64_t page = 0; page < kPages; page++) {
      if (last_[page] == 0 || slab_->IsLost(page * kPage, page * kPage + 1)) continue;
      for (const Replica& replica : slab_->replicas()) {
        if (replica.state != ReplicaState::kLive) continue;
        ASSERT_EQ(Content(replica)[page], last_[page])
            << "page " << page << " of donor " << replica.donor;
      }
    }
  }

  testing::Random& random_;
  std::unique_ptr<Slab> slab_;
  std::map<uint32_t, Memory> memory_;  // by donor
  std::optional<CopyInProgress> copy_;
  std::vector<int> last_ = std::vector<int>(kPages, 0);    // written last; 0: nothing
  std::vector<int> synced_ = std::vector<int>(kPages, 0);  // at the last flush
  Placement::Slab file_;
  int version_ = 0;
  uint64_t last_lease_ = 0;
};

TEST(KeptSlabProperty, WhatWasFlushedSurvivesKillsAndReplicasAgree) {
  testing::Random random(testing::TestSeed(36));
  for (int round = 0; round < 2000; round++) {
    Scene scene(random);
    for (int kill = 0; kill < 10; kill++) {
      for (uint64_t steps = random.Between(1, 40); steps != 0; steps--) {
        scene.Step();
        if (HasFatalFailure()) return;
      }
      scene.Kill();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace rocegw::far
