// SPDX-License-Identifier: Apache-2.0
// Part of the dispatcher that adds replicas to slabs, and copies data to them.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

void Dispatcher::AddReplica(uint32_t slab, const Replica& replica) {
  {
    const std::lock_guard lock(mutex_);
    if (links_[replica.donor].state != DonorLink::State::kUp) return;
    slabs_[slab].Add(replica);
    placement_++;
  }
  Completed();
}

Dispatcher::CopyStart Dispatcher::StartCopy(uint32_t slab, uint64_t replica, uint64_t* position,
                                            std::function<void(bool copied)> done) {
  auto operation = std::make_unique<Operation>();
  {
    const std::lock_guard lock(mutex_);
    Slab& state = slabs_[slab];
    if (state.FindRestoring(replica) == nullptr) return CopyStart::kBlocked;
    const auto stretch =
        state.NextWritten(*position, std::min(copy_bytes_, settings_.merge.most_bytes));
    if (!stretch) {
      copy_bytes_ = kCopyBytes;
      state.Restored(replica);
      placement_++;
      return CopyStart::kNothingLeft;
    }
    const Replica* source = state.ForRead(turn_++);
    if (source == nullptr && !IsDiskUp()) return CopyStart::kBlocked;
    std::vector<Replica> sources;
    if (source != nullptr) sources.push_back(*source);
    if (!PrepareCopy(*operation, slab, *stretch, sources, {replica, std::move(done)})) {
      return CopyStart::kLater;
    }
    *position = stretch->end;
  }
  if (operation->transfer_count != 0) {
    Send({operation.release()});
  } else {
    ReadCopyFromDisk(operation.release());
  }
  return CopyStart::kStarted;
}

// Holds the stretch and starts its read from the source, if there is one. With the lock.
bool Dispatcher::PrepareCopy(Operation& operation, uint32_t slab, const Slab::Stretch& stretch,
                             const std::vector<Replica>& sources, Copy copy) {
  Part part;
  part.offset = slab * slab_bytes_ + stretch.begin;
  part.length = static_cast<uint32_t>(stretch.end - stretch.begin);
  part.staged = true;
  if (!holds_.Hold(part.offset, part.end())) return false;
  operation.plan.parts.push_back(part);
  operation.copy = new Copy(std::move(copy));
  if (!Reserve(operation, sources)) {
    holds_.Release(part.offset);
    delete operation.copy;
    return false;
  }
  Start(operation, sources);
  return true;
}

// Goes on with the write to the new replica when the read has succeeded. The copy fails when the
// replica was removed meanwhile: its donor may have another one by now, of zeroed memory.
void Dispatcher::FinishCopy(Operation* operation, bool ok) {
  if (ok && operation->copy->replica == Copy::kDisk) {
    WriteCopyToDisk(operation);
    return;
  }
  bool send = false;
  {
    const std::lock_guard lock(mutex_);
    const Replica* target = slabs_[operation->slab].FindRestoring(operation->copy->replica);
    ok = ok && target != nullptr && suspended_ == 0;
    if (ok && operation->direction == Direction::kRead) {
      operation->direction = Direction::kWrite;
      Start(*operation, {*target});
      send = true;
    }
    if (ok && !send) {
      const bool agrees = target->state == ReplicaState::kAgreeing;
      (agrees ? counts_.agreed_bytes : counts_.restored_bytes) += operation->plan.length();
    }
    if (!send) Release(*operation);
  }
  // Room that was reserved for a copy to the disk whose read has failed.
  if (operation->disk != nullptr) disk_->copy().Free(operation->disk->data);
  if (send) {
    Send({operation});
    return;
  }
  operation->copy->done(ok);
  delete operation->copy;
  delete operation;
}

bool Dispatcher::SharesDomain(const Slab& slab) const {
  const std::vector<Replica>& replicas = slab.replicas();
  for (size_t one = 0; one < replicas.size(); one++) {
    for (size_t other = 0; other < one; other++) {
      if (domains_[replicas[one].donor] == domains_[replicas[other].donor]) return true;
    }
  }
  return false;
}

bool Dispatcher::IsBusyLocked(uint32_t slab, uint32_t donor) const {
  for (const Transfer* transfer = links_[donor].oldest; transfer != nullptr;
       transfer = transfer->next) {
    if (transfer->operation->slab == slab) return true;
  }
  return false;
}

std::vector<DonorOffer> Dispatcher::OffersLocked() const {
  std::vector<DonorOffer> offers;
  for (uint32_t donor = 0; donor < links_.size(); donor++) {
    const DonorLink& link = links_[donor];
    offers.push_back(
        {link.state == DonorLink::State::kUp, link.free_bytes, domains_[donor], link.draining});
  }
  return offers;
}

std::vector<Dispatcher::Dropped> Dispatcher::DropReplicas() {
  std::vector<Dropped> dropped;
  const std::lock_guard lock(mutex_);
  const std::vector<DonorOffer> offers = OffersLocked();
  for (uint32_t number = 0; number < slabs_.size(); number++) {
    Slab& slab = slabs_[number];
    while (const auto donor = ChooseDropped(offers, slab, settings_.replicas)) {
      for (const Replica& replica : slab.replicas()) {
        if (replica.donor == *donor) dropped.push_back({number, *donor, replica.lease});
      }
      slab.Drop(*donor);
    }
  }
  counts_.leases_returned += dropped.size();
  if (!dropped.empty()) placement_++;
  return dropped;
}

}  // namespace rocegw::far
