// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/slab.h"

#include <algorithm>

namespace rocegw::far {

void Slab::Add(Replica replica) {
  const bool has_data = std::find(written_.begin(), written_.end(), true) != written_.end();
  replica.state = has_data && live() != 0 ? ReplicaState::kRestoring : ReplicaState::kLive;
  replicas_.push_back(replica);
}

void Slab::Restored(uint32_t donor) {
  for (Replica& replica : replicas_) {
    if (replica.donor == donor) replica.state = ReplicaState::kLive;
  }
}

bool Slab::DonorLost(uint32_t donor) {
  if (std::erase_if(replicas_, [donor](const Replica& r) { return r.donor == donor; }) == 0) {
    return false;
  }
  if (live() != 0) return true;
  replicas_.clear();
  for (size_t page = 0; page < written_.size(); page++) {
    if (written_[page]) lost_[page] = true;
    written_[page] = false;
  }
  generation_++;
  return true;
}

const Replica* Slab::ForRead(uint64_t turn) const {
  const size_t count = live();
  if (count == 0) return nullptr;
  size_t left = turn % count;
  for (const Replica& replica : replicas_) {
    if (replica.state == ReplicaState::kLive && left-- == 0) return &replica;
  }
  return nullptr;
}

bool Slab::Has(uint32_t donor) const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [donor](const Replica& replica) { return replica.donor == donor; });
}

size_t Slab::live() const {
  return static_cast<size_t>(
      std::count_if(replicas_.begin(), replicas_.end(),
                    [](const Replica& r) { return r.state == ReplicaState::kLive; }));
}

bool Slab::IsLost(uint64_t begin, uint64_t end) const {
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) {
    if (lost_[page]) return true;
  }
  return false;
}

bool Slab::LeavesLost(uint64_t begin, uint64_t end) const {
  const uint64_t first = begin / kPageBytes;
  const uint64_t last = (end - 1) / kPageBytes;
  return (begin % kPageBytes != 0 && lost_[first]) || (end % kPageBytes != 0 && lost_[last]);
}

void Slab::WriteSent(uint64_t begin, uint64_t end) {
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) written_[page] = true;
}

void Slab::WriteDone(uint64_t begin, uint64_t end) {
  // Pages that the range covers only in part were not lost when the write was sent (LeavesLost).
  const uint64_t first = (begin + kPageBytes - 1) / kPageBytes;
  for (uint64_t page = first; (page + 1) * kPageBytes <= end; page++) lost_[page] = false;
}

std::optional<Slab::Stretch> Slab::NextWritten(uint64_t from, uint64_t most) const {
  uint64_t page = from / kPageBytes;
  while (page < written_.size() && !written_[page]) page++;
  if (page == written_.size()) return std::nullopt;
  const uint64_t begin = page;
  while (page < written_.size() && written_[page] && (page - begin) * kPageBytes < most) page++;
  return Stretch{begin * kPageBytes, page * kPageBytes};
}

uint64_t Slab::lost_pages() const {
  return static_cast<uint64_t>(std::count(lost_.begin(), lost_.end(), true));
}

}  // namespace rocegw::far
