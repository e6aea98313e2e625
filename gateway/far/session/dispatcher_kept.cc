// SPDX-License-Identifier: Apache-2.0
// Part of the dispatcher for sessions that outlive their process: the placement of replicas is
// saved before a flush that depends on it succeeds, and a later process continues with it.
#include <algorithm>
#include <cerrno>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {
namespace {

// Connections, about a second apart, that a host refuses when no donor listens there any more.
constexpr uint32_t kMostRefusals = 3;

}  // namespace

void Dispatcher::Continue(const Placement& kept, const std::vector<uint32_t>& numbers,
                          const std::vector<CopyFile::Range>& data) {
  const std::lock_guard lock(mutex_);
  for (size_t each = 0; each < numbers.size(); each++) {
    DonorLink& link = links_[numbers[each]];
    link.proof = {kept.donors[each].session, kept.donors[each].secret};
    link.suspended = true;
    suspended_++;
  }
  unheard_ = suspended_ != 0;
  suspended_since_ = Clock::now();
  suspended_until_ =
      suspended_since_ + std::chrono::milliseconds(settings_.connect_timeout_ms) * suspended_;
  for (size_t number = 0; number < kept.slabs.size(); number++) {
    for (const Placement::Replica& replica : kept.slabs[number].replicas) {
      slabs_[number].AddKept({numbers[replica.donor], replica.lease, replica.address, replica.key,
                              replica.whole ? ReplicaState::kLive : ReplicaState::kRestoring});
    }
  }
  const auto for_pages = [&](const CopyFile::Range& range, const auto& call) {
    for (uint64_t page = range.begin; page < range.end; page += Slab::kPageBytes) {
      call(slabs_[page / slab_bytes_], page % slab_bytes_, page % slab_bytes_ + Slab::kPageBytes);
    }
  };
  for (const CopyFile::Range& range : data) {
    for_pages(range, [](Slab& slab, uint64_t begin, uint64_t end) {
      slab.Recovered(begin, end);
      // New memory of the slab must not be taken for what it has lost.
      if (slab.replicas().empty()) slab.RecoveredLost(begin, end);
    });
  }
  for (size_t number = 0; number < kept.slabs.size(); number++) {
    for (const Placement::Range& lost : kept.slabs[number].lost) {
      slabs_[number].RecoveredLost(lost.begin, lost.end);
    }
  }
}

void Dispatcher::EndEarlier(const Placement& kept, const std::vector<uint32_t>& numbers) {
  const std::lock_guard lock(mutex_);
  for (size_t each = 0; each < numbers.size(); each++) {
    links_[numbers[each]].proof = {kept.donors[each].session, kept.donors[each].secret};
  }
}

void Dispatcher::Refused(uint32_t donor) {
  const std::lock_guard lock(mutex_);
  DonorLink& link = links_[donor];
  if (!link.suspended || unheard_ || ++link.refusals < kMostRefusals) return;
  EndSuspensionLocked(donor, false);
}

bool Dispatcher::IsAgreeing() {
  const std::lock_guard lock(mutex_);
  return std::any_of(slabs_.begin(), slabs_.end(),
                     [](const Slab& slab) { return slab.agreeing() != 0; });
}

// Donors without a replica are left out: their sessions end by themselves.
Placement Dispatcher::PlacementLocked() const {
  Placement placement;
  placement.tenant = settings_.tenant;
  placement.slab_bytes = slab_bytes_;
  std::vector<bool> used(links_.size(), false);
  for (const Slab& slab : slabs_) {
    for (const Replica& replica : slab.replicas()) used[replica.donor] = true;
  }
  std::vector<uint32_t> numbers(links_.size(), 0);
  for (size_t donor = 0; donor < links_.size(); donor++) {
    const DonorLink& link = links_[donor];
    // Donors of earlier versions have no proof, and end the session with its connection.
    used[donor] = used[donor] && link.proof.session != 0;
    if (!used[donor]) continue;
    numbers[donor] = static_cast<uint32_t>(placement.donors.size());
    placement.donors.push_back({link.named.host, link.named.port, link.named.failure_domain,
                                link.named.name, link.proof.session, link.proof.secret});
  }
  for (const Slab& slab : slabs_) {
    Placement::Slab& kept = placement.slabs.emplace_back();
    for (const Replica& replica : slab.replicas()) {
      if (!used[replica.donor]) continue;
      // Agreeing replicas have everything that was synced.
      kept.replicas.push_back({numbers[replica.donor], replica.lease, replica.address, replica.key,
                               replica.state != ReplicaState::kRestoring});
    }
    const bool whole = std::any_of(kept.replicas.begin(), kept.replicas.end(),
                                   [](const Placement::Replica& replica) { return replica.whole; });
    if (!whole) kept.replicas.clear();
    for (auto lost = slab.NextLacking(0, false); lost; lost = slab.NextLacking(lost->end, false)) {
      kept.lost.push_back({lost->begin, lost->end});
    }
  }
  return placement;
}

int Dispatcher::SavePlacement() {
  if (!settings_.save_placement) return 0;
  const std::lock_guard saving(save_mutex_);
  Placement placement;
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (unheard_) return -EAGAIN;
    number = placement_;
    if (number == saved_placement_) return 0;
    placement = PlacementLocked();
  }
  const Status saved = settings_.save_placement(Encode(placement));
  const std::lock_guard lock(mutex_);
  if (saved.ok()) saved_placement_ = number;
  (saved.ok() ? counts_.placement_saves : counts_.placement_errors)++;
  return saved.ok() ? 0 : -EIO;
}

// Writes that were complete before the call are on all replicas that are live now.
int Dispatcher::FlushPlacement() {
  if (!settings_.save_placement) return 0;
  const int error = SavePlacement();
  const std::lock_guard lock(mutex_);
  const bool lost = lost_ever_ != lost_known_;
  lost_known_ = lost_ever_;
  return lost ? -EIO : error;
}

bool Dispatcher::IsPlacementSaved() {
  const std::lock_guard lock(mutex_);
  return !settings_.save_placement || saved_placement_ == placement_;
}

void Dispatcher::AcceptLosses() {
  const std::lock_guard lock(mutex_);
  lost_known_ = lost_ever_;
}

}  // namespace rocegw::far
