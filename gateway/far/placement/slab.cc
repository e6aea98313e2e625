// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/placement/slab.h"

#include <algorithm>

namespace rocegw::far {

uint64_t Slab::Add(Replica replica) {
  const bool has_data = std::find(written_.begin(), written_.end(), true) != written_.end();
  const bool lacks_data = has_data && (live() != 0 || disk_);
  replica.state = lacks_data ? ReplicaState::kRestoring : ReplicaState::kLive;
  replica.serial = ++last_serial_;
  replicas_.push_back(replica);
  return replica.serial;
}

void Slab::AddKept(Replica replica) {
  if (replica.state == ReplicaState::kLive && live() != 0) replica.state = ReplicaState::kAgreeing;
  replica.serial = ++last_serial_;
  replicas_.push_back(replica);
}

void Slab::Restored(uint64_t serial) {
  if (unsure_) {
    // The replica has what the disk may have lost.
    unsure_ = false;
    for (size_t page = 0; page < written_.size(); page++) {
      if (written_[page]) SetOffDisk(page, true);
    }
  }
  for (Replica& replica : replicas_) {
    if (replica.serial == serial) replica.state = ReplicaState::kLive;
  }
}

bool Slab::DonorLost(uint32_t donor) {
  if (std::erase_if(replicas_, [donor](const Replica& r) { return r.donor == donor; }) == 0) {
    return false;
  }
  if (live() != 0 || Promote()) return true;
  for (size_t page = 0; page < written_.size(); page++) {
    if (written_[page] && (!disk_ || off_disk_[page])) LosePage(page);
  }
  generation_++;
  if (disk_) return true;
  // Writes that are still on their way to these replicas have failed with the generation, and later
  // ones wait for them.
  for (Replica& replica : replicas_) replica.state = ReplicaState::kLive;
  return true;
}

// Makes the first agreeing replica live. Returns whether there is one.
bool Slab::Promote() {
  const auto next = std::find_if(replicas_.begin(), replicas_.end(), [](const Replica& replica) {
    return replica.state == ReplicaState::kAgreeing;
  });
  if (next == replicas_.end()) return false;
  next->state = ReplicaState::kLive;
  for (Replica& replica : replicas_) replica.serial = ++last_serial_;
  return true;
}

void Slab::Drop(uint32_t donor) {
  std::erase_if(replicas_, [donor](const Replica& replica) { return replica.donor == donor; });
}

void Slab::LosePage(uint64_t page) {
  SetLost(page, true);
  written_[page] = false;
  if (disk_) SetOffDisk(page, false);
}

void Slab::SetLost(uint64_t page, bool lost) {
  if (lost_[page] == lost) return;
  lost_[page] = lost;
  lost_count_ += lost ? 1 : -1;
}

void Slab::SetOffDisk(uint64_t page, bool off) {
  if (off_disk_[page] == off) return;
  off_disk_[page] = off;
  off_disk_count_ += off ? 1 : -1;
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

const Replica* Slab::FindRestoring(uint64_t serial) const {
  for (const Replica& replica : replicas_) {
    if (replica.serial != serial) continue;
    return replica.state != ReplicaState::kLive ? &replica : nullptr;
  }
  return nullptr;
}

size_t Slab::CountOf(ReplicaState state) const {
  return static_cast<size_t>(std::count_if(replicas_.begin(), replicas_.end(),
                                           [state](const Replica& r) { return r.state == state; }));
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
  for (uint64_t page = first; (page + 1) * kPageBytes <= end; page++) SetLost(page, false);
}

// First stretch of pages at or behind `from` that `holds` is true of, at most `most` bytes.
template <typename Predicate>
std::optional<Slab::Stretch> Slab::NextStretch(uint64_t from, uint64_t most,
                                               const Predicate& holds) const {
  uint64_t page = from / kPageBytes;
  while (page < written_.size() && !holds(page)) page++;
  if (page == written_.size()) return std::nullopt;
  const uint64_t begin = page;
  while (page < written_.size() && holds(page) && (page - begin) * kPageBytes < most) page++;
  return Stretch{begin * kPageBytes, page * kPageBytes};
}

std::optional<Slab::Stretch> Slab::NextWritten(uint64_t from, uint64_t most) const {
  return NextStretch(from, most, [this](uint64_t page) { return written_[page]; });
}

std::optional<Slab::Stretch> Slab::NextData(uint64_t from, uint64_t most) const {
  return NextStretch(from, most, [this](uint64_t page) { return written_[page] || lost_[page]; });
}

std::optional<Slab::Stretch> Slab::NextLacking(uint64_t from, bool off_disk) const {
  if (lost_count_ == 0 && (!off_disk || off_disk_count_ == 0)) return std::nullopt;
  return NextStretch(from, UINT64_MAX, [this, off_disk](uint64_t page) {
    return lost_[page] || (off_disk && off_disk_[page]);
  });
}

// Disk copy --------------------------------------------------------------------------------------

bool Slab::HasData(uint64_t begin, uint64_t end) const {
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) {
    if (written_[page]) return true;
  }
  return false;
}

void Slab::Recovered(uint64_t begin, uint64_t end) { WriteSent(begin, end); }

void Slab::RecoveredLost(uint64_t begin, uint64_t end) {
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) LosePage(page);
}

void Slab::DiskSkipped(uint64_t begin, uint64_t end) {
  disk_epoch_++;
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) SetOffDisk(page, true);
}

bool Slab::DiskWritten(uint64_t begin, uint64_t end, uint32_t epoch, bool ok) {
  bool whole = ok;
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) {
    const bool covered = begin <= page * kPageBytes && (page + 1) * kPageBytes <= end;
    if (ok && covered && epoch == disk_epoch_) {
      SetOffDisk(page, false);
      SetLost(page, false);
      written_[page] = true;
    } else if (!ok && live() == 0) {
      LosePage(page);
    } else if (!ok) {
      SetOffDisk(page, true);
    }
    whole = whole && !off_disk_[page] && !lost_[page];
  }
  return whole;
}

bool Slab::IsOnDisk(uint64_t begin, uint64_t end) const {
  for (uint64_t page = begin / kPageBytes; page * kPageBytes < end; page++) {
    if (off_disk_[page] || lost_[page]) return false;
  }
  return true;
}

void Slab::DiskFlushFailed() {
  if (live() == 0) {
    unsure_ = unsure_ || HasData(0, written_.size() * kPageBytes);
    return;
  }
  for (size_t page = 0; page < written_.size(); page++) {
    if (written_[page]) SetOffDisk(page, true);
  }
}

std::optional<Slab::Stretch> Slab::NextOffDisk(uint64_t from, uint64_t most) const {
  if (off_disk_count_ == 0) return std::nullopt;
  return NextStretch(from, most, [this](uint64_t page) { return off_disk_[page]; });
}

}  // namespace rocegw::far
