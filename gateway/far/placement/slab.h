// SPDX-License-Identifier: Apache-2.0
// Slab: a stretch of the session's space with the leases that hold its replicas, and the state of
// each page. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rocegw::far {

enum class ReplicaState : uint8_t {
  kLive,       // has all data
  kRestoring,  // gets new writes; old data is being copied to it
  // Had all data in an earlier session that was killed: it has everything that was synced, and may
  // differ from the live replica in what was being written. All data is being copied to it.
  kAgreeing,
};

struct Replica {
  uint32_t donor = 0;
  uint64_t lease = 0;
  uint64_t address = 0;  // address of the slab's first byte at the donor
  uint32_t key = 0;
  ReplicaState state = ReplicaState::kLive;
  // Set by the slab, from 1. A donor may get the slab again, with new memory and with the number of
  // an earlier lease: only this number tells the replicas apart.
  uint64_t serial = 0;
};

class Slab {
 public:
  static constexpr uint64_t kPageBytes = 4096;

  // `bytes` is a multiple of kPageBytes. With `disk`, writes go to a disk copy as well, which
  // serves while no replica is live.
  explicit Slab(uint64_t bytes, bool disk = false)
      : disk_(disk),
        written_(bytes / kPageBytes, false),
        lost_(bytes / kPageBytes, false),
        off_disk_(disk ? bytes / kPageBytes : 0, false) {}

  // Adds a replica of zeroed memory. It is live at once unless live replicas or the disk copy have
  // data it lacks. Returns its serial number.
  uint64_t Add(Replica replica);
  // Adds a replica that an earlier session had, live if it was whole. Of several whole ones the
  // first is live, and the others are to agree with it.
  void AddKept(Replica replica);
  // Number of replicas that are to agree with the live one.
  size_t agreeing() const { return CountOf(ReplicaState::kAgreeing); }
  // The copy to this replica is complete.
  void Restored(uint64_t serial);
  // Removes the donor's replica. When no live replica is left, every page that was written is lost
  // and a new generation begins; restoring replicas are live then, since no page is left that they
  // lack. With a disk copy only those pages are lost that it lacks, and restoring replicas stay so.
  // An agreeing replica takes the place of the last live one instead, and copies to others begin
  // anew: they get new serial numbers.
  // Returns whether there was one.
  bool DonorLost(uint32_t donor);
  // Removes the donor's replica while others have all data.
  void Drop(uint32_t donor);

  // Live replica for a read; reads with different `turn` are distributed. nullptr: none is live.
  const Replica* ForRead(uint64_t turn) const;
  const std::vector<Replica>& replicas() const { return replicas_; }
  bool Has(uint32_t donor) const;
  // Replica that data is being copied to. nullptr: it was removed, or is live.
  const Replica* FindRestoring(uint64_t serial) const;
  size_t live() const { return CountOf(ReplicaState::kLive); }
  // Increases each time that all replicas are lost. A write that was sent in an earlier generation
  // has failed.
  uint32_t generation() const { return generation_; }

  // Offsets in bytes within the slab; [begin, end) is not empty.
  // Whether the range touches a lost page.
  bool IsLost(uint64_t begin, uint64_t end) const;
  // Whether a write of the range would leave a lost page partly unknown.
  bool LeavesLost(uint64_t begin, uint64_t end) const;
  // A write of the range was sent: its pages are data from now on.
  void WriteSent(uint64_t begin, uint64_t end);
  // The write succeeded in the current generation: pages that it covers are no longer lost.
  void WriteDone(uint64_t begin, uint64_t end);
  // The first stretch of written pages at or behind `from`, at most `most` bytes; nullopt: none.
  struct Stretch {
    uint64_t begin;
    uint64_t end;
  };
  std::optional<Stretch> NextWritten(uint64_t from, uint64_t most) const;
  // The same of pages that were written or are lost: all others are zero.
  std::optional<Stretch> NextData(uint64_t from, uint64_t most) const;
  uint64_t lost_pages() const { return lost_count_; }

  // Disk copy. Whether a page of the range was written.
  bool HasData(uint64_t begin, uint64_t end) const;
  // The disk copy has data of the range from before the session.
  void Recovered(uint64_t begin, uint64_t end);
  // The data that a session before this one had in the range is lost.
  void RecoveredLost(uint64_t begin, uint64_t end);
  // A write of the range passed the disk copy by: it lacks these pages, whatever of them is still
  // on its way. Writes that were on their way before belong to an earlier epoch.
  void DiskSkipped(uint64_t begin, uint64_t end);
  uint32_t disk_epoch() const { return disk_epoch_; }
  // A write of the range that was sent to the disk copy in this epoch has ended. Returns whether
  // the disk copy has all its pages now.
  bool DiskWritten(uint64_t begin, uint64_t end, uint32_t epoch, bool ok);
  // Whether the disk copy has all data of the range.
  bool IsOnDisk(uint64_t begin, uint64_t end) const;
  // Writes of the disk copy since its last flush may be lost. Pages of live replicas are to be
  // written again.
  void DiskFlushFailed();
  // The next stretch of pages that live replicas have and the disk copy lacks.
  std::optional<Stretch> NextOffDisk(uint64_t from, uint64_t most) const;
  // The next stretch of pages that are lost, or with `off_disk` also those that only replicas have.
  std::optional<Stretch> NextLacking(uint64_t from, bool off_disk) const;
  uint64_t off_disk_pages() const { return off_disk_count_; }
  // Whether a flush of the disk copy puts everything on the disk that was written.
  bool IsDiskWhole() const { return off_disk_count_ == 0 && lost_count_ == 0 && !unsure_; }

 private:
  template <typename Predicate>
  std::optional<Stretch> NextStretch(uint64_t from, uint64_t most, const Predicate& holds) const;
  size_t CountOf(ReplicaState state) const;
  bool Promote();
  void SetOffDisk(uint64_t page, bool off);
  void SetLost(uint64_t page, bool lost);
  void LosePage(uint64_t page);

  const bool disk_;
  std::vector<Replica> replicas_;
  uint64_t last_serial_ = 0;
  std::vector<bool> written_;  // by page; pages never written are zero
  std::vector<bool> lost_;     // by page
  uint64_t lost_count_ = 0;
  uint32_t generation_ = 0;
  std::vector<bool> off_disk_;  // by page: data that the disk copy lacks
  uint64_t off_disk_count_ = 0;
  uint32_t disk_epoch_ = 0;
  bool unsure_ = false;  // a flush failed while only the disk copy had the data
};

}  // namespace rocegw::far
