// SPDX-License-Identifier: Apache-2.0
// Request path of a session: callers' requests enter the merge queue of their direction, leave it
// as RDMA operations, and are completed. The earliest thread that finds work in a queue sends the
// whole work, and threads whose requests were taken return. Any thread, except where a function
// says otherwise; one lock guards the state and is never held while data is copied, posted or a
// callback runs.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gateway/far/placement/choose_donor.h"
#include "gateway/far/placement/slab.h"
#include "gateway/far/request/admission.h"
#include "gateway/far/request/merge_queue.h"
#include "gateway/far/session/disk_path.h"
#include "gateway/far/session/donor_link.h"
#include "gateway/far/session/operation.h"
#include "gateway/far/session/registered_memory.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

class Dispatcher {
 public:
  // Transfers in flight for each donor. One of them is of the copy in progress, which so never
  // waits for requests.
  static constexpr uint32_t kSendDepth = 129;

  // `donor_failed` is called without the lock when a donor's transfer failed: the caretaker ends
  // the connection. `memory` outlives the dispatcher. `disk` is the disk copy, started; nullptr:
  // there is none.
  Dispatcher(const Settings& settings, RegisteredMemory& memory, std::unique_ptr<DiskCopy> disk,
             std::function<void()> donor_failed);
  ~Dispatcher() { StopDisk(); }
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Requests. kContinued: the rest, at most a page, of what was let in before: the limit of queued
  // bytes does not apply.
  enum class Limit : uint8_t { kApplies, kContinued };
  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length,
             rocegw_memory_done done, void* argument, Limit limit = Limit::kApplies);
  int SubmitAndWait(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length);
  // `done` is called when all writes that were complete before are on the disk, or with -EIO when
  // the disk copy lacks data, as long as it does. Without a disk copy, when a later process would
  // find these writes at the donors, or with -EIO when some of them were lost since the last call.
  // Without either it is called at once.
  void Flush(rocegw_memory_done done, void* argument);
  int FlushAndWait();
  void WaitUntilIdle();
  void SetWindow(Admission::WindowHook hook, void* argument);
  void* Allocate(uint64_t bytes);
  void Free(void* memory);
  uint64_t size() const { return slab_bytes_ * settings_.slabs; }
  // The first stretch of the range, at most `most` bytes, whose pages may be other than zero, or
  // are lost. nullopt: there is none.
  std::optional<Slab::Stretch> NextData(uint64_t begin, uint64_t end, uint64_t most);

  // Completions, by the pollers: all transfers of one look, then Completed once.
  void OnTransfer(Transfer& transfer, bool ok);
  void Completed();

  // Donors, by the caretaker.
  void LinkUp(uint32_t donor, std::unique_ptr<Connection> connection, const Welcome& welcome);
  // Counts a question to the donor, or with -1 one that could not be sent.
  void CountQuestion(DonorLink& link, MessageType type, int change);
  // Returns the donor of a message that answers a question. A donor that says anything else, or
  // bytes that are no message (nullopt), is lost. nullopt: the message is not to be handled.
  std::optional<uint32_t> TakeAnswer(const Connection& connection,
                                     const std::optional<Message>& message);
  // Declares the donor lost: its replicas are not used any more.
  void FailLink(uint32_t donor, bool timed_out);
  // The device of this host has ended, and all connections with it. Without a disk copy, donors
  // keep their replicas until the session continues there: requests wait meanwhile, as long as the
  // donors keep the leases at most. With a disk copy, which serves at once, all donors are lost.
  void DeviceLost();
  // The same for donors that were connected by that device afterwards.
  void SuspendLinks();
  // Whether no donor has a connection.
  bool AreLinksDown();
  // Another device is there: buffers are registered anew. Donors where the session does not
  // continue soon are lost.
  void DeviceChanged();
  bool IsSuspended();
  // First words of the next connection to the donor: it continues the session there, or ends one
  // that was given up.
  Hello HelloFor(uint32_t donor);
  // Fails donors that completed nothing for the timeout, and ends connections whose transfers have
  // all completed, or have not within the timeout although they were aborted. `quiet` makes sure
  // that the donor's poller is not handling completions.
  void CheckLinks(const std::function<std::unique_lock<std::mutex>(uint32_t donor)>& quiet);
  // Grows by AddDonor only; its elements stay where they are.
  std::deque<DonorLink>& links() { return links_; }
  // Adds a donor, not connected, in that failure domain: its number is the next one.
  void AddDonor(uint32_t domain, const Settings::Donor& named);
  std::mutex& mutex() { return mutex_; }

  // Slabs, by the caretaker.
  std::vector<Slab>& slabs() { return slabs_; }
  void AddReplica(uint32_t slab, const Replica& replica);
  // Returns what the donors offer. With the lock.
  std::vector<DonorOffer> OffersLocked() const;
  // Removes replicas of draining donors, and those beyond the wanted number, from slabs that have
  // enough live ones without. Their leases can be returned when the slab has no transfer in flight
  // at the donor any more.
  struct Dropped {
    uint32_t slab = 0;
    uint32_t donor = 0;
    uint64_t lease = 0;
  };
  std::vector<Dropped> DropReplicas();
  // With the lock.
  bool IsBusyLocked(uint32_t slab, uint32_t donor) const;
  enum class CopyStart : uint8_t {
    kNothingLeft,
    kStarted,
    kLater,    // the range, the window or the disk's queue is busy: the same again soon
    kBlocked,  // no source or no destination is there
  };
  // Starts the copy of the next written stretch at or behind *position to the restoring replica
  // with this serial number, and sets *position behind it. kNothingLeft: the replica is live now.
  // kBlocked: also when it is no restoring replica of the slab any more. One copy is in progress at
  // a time, those to the disk included.
  CopyStart StartCopy(uint32_t slab, uint64_t replica, uint64_t* position,
                      std::function<void(bool copied)> done);

  // Placement that outlives the process (Settings::save_placement).
  // Continues the session of an earlier process: its donors are suspended until the session is
  // continued there. `numbers` are those of the placement's donors. Before the caretaker starts.
  // The ranges of `data` are those that the program has data in.
  void Continue(const Placement& kept, const std::vector<uint32_t>& numbers,
                const std::vector<CopyFile::Range>& data);
  // The earlier process has left nothing of use: its sessions are to end.
  void EndEarlier(const Placement& kept, const std::vector<uint32_t>& numbers);
  // The donor's host refuses connections. After some in a row, its memory is gone: a suspended
  // donor is lost.
  void Refused(uint32_t donor);
  // Whether replicas of an earlier process are still being made equal.
  bool IsAgreeing();
  // Saves the placement if it has changed since. Returns 0, or a negative errno value when a later
  // process would find an earlier placement.
  int SavePlacement();
  bool IsPlacementSaved();
  // No flush fails because of pages that were lost until now.
  void AcceptLosses();
  // Disk copy, by the caretaker; nothing happens without one.
  // The slab's disk copy has data of the range, which begins in the slab, before the session does.
  void Recover(uint64_t begin, uint64_t end);
  // The file says that these pages were lost.
  void RecoverLost(const std::vector<CopyFile::Range>& lost);
  void CheckDisk();
  bool IsDiskUp() const { return disk_ != nullptr && disk_->copy().up(); }
  // The first slab from `first` on whose live replicas have pages that the disk copy lacks.
  std::optional<uint32_t> FindOffDisk(uint32_t first);
  // Starts the copy of the next stretch that the disk copy lacks, as StartCopy does.
  CopyStart StartDiskCopy(uint32_t slab, uint64_t* position, std::function<void(bool copied)> done);
  uint64_t OffDiskPages();
  // Puts everything on the disk and closes the copy; the session has no requests. The file gets a
  // list of the pages that it lacks.
  struct DiskEnd {
    uint64_t lacking = 0;  // pages
    bool noted = true;     // the file says which, and the last flush has succeeded
  };
  DiskEnd StopDisk();

  void AddStatistics(rocegw_memory_statistics& statistics);

 private:
  // Part that completes without a transfer.
  struct Settled {
    Part part;
    int status;
    bool from_disk = false;  // the disk copy is read
  };
  using Batch = std::vector<Operation*>;
  // Stretch that is copied to a new replica at a time.
  static constexpr uint64_t kCopyBytes = 256 << 10;

  MergeQueue& Queue(Direction direction) {
    return direction == Direction::kRead ? reads_ : writes_;
  }
  void Drain(Direction direction);
  bool TakeOne(Direction direction, Batch& batch, std::vector<Settled>& settled);
  void Settle(Direction direction, const Slab& slab, const Plan& plan,
              std::vector<Settled>& settled);
  bool Reserve(Operation& operation, const std::vector<Replica>& targets);
  bool ReserveDisk(Operation& operation);
  std::vector<CopyFile::Range> Lacking(bool off_disk) const;
  void NoteLost(std::function<void(bool noted)> done);
  void ReadFromDisk(const Part& part);
  void SendToDisk(Batch& batch);
  void OnDiskWritten(const std::shared_ptr<DiskWrite>& write, int status,
                     const DiskCopy::Pages& bad);
  void WriteCopyToDisk(Operation* operation);
  void Start(Operation& operation, const std::vector<Replica>& targets);
  void Send(const Batch& batch);
  uint32_t Segments(const Operation& operation, ibv_sge* segments) const;
  void CopyStaged(const Operation& operation, bool out) const;
  void Finish(Operation* operation);
  void FinishRead(Operation* operation);
  void FinishCopy(Operation* operation, bool ok);
  bool PrepareCopy(Operation& operation, uint32_t slab, const Slab::Stretch& stretch,
                   const std::vector<Replica>& sources, Copy copy);
  void ReadCopyFromDisk(Operation* operation);
  void CopyUnreadable(const Operation& operation);
  void Release(const Operation& operation);
  void FinishPart(const Part& part, int status);
  void FailLinkLocked(uint32_t donor, bool timed_out);
  void LoseDonorLocked(uint32_t donor);
  Placement PlacementLocked() const;
  int FlushPlacement();
  void SuspendLinksLocked();
  void EndSuspensionLocked(uint32_t donor, bool continued);
  void CheckSuspension();
  void RepeatLater(const Operation& operation);
  bool SharesDomain(const Slab& slab) const;

  const Settings settings_;
  const uint64_t slab_bytes_;
  RegisteredMemory& memory_;
  const std::function<void()> donor_failed_;
  const std::unique_ptr<DiskPath> disk_;  // nullptr: none

  std::mutex mutex_;
  std::condition_variable less_queued_;
  std::vector<Slab> slabs_;
  std::deque<DonorLink> links_;
  uint32_t suspended_ = 0;  // donors
  Clock::time_point suspended_until_;
  Clock::time_point suspended_since_;
  uint32_t device_number_ = 0;     // number of the device in use, counted from the first
  std::vector<uint32_t> domains_;  // by donor
  MergeQueue reads_;
  MergeQueue writes_;
  RangeHolds holds_;
  Admission admission_;
  uint64_t queued_bytes_ = 0;  // bytes of requests that are not complete
  uint64_t turn_ = 0;          // distributes reads over replicas
  // Longest stretch that is copied at a time; a page after the disk copy could not be read.
  uint64_t copy_bytes_ = kCopyBytes;
  std::vector<CopyFile::Range> noted_;  // lost pages that the disk copy's file knows of
  std::optional<DiskEnd> disk_end_;     // the disk copy was closed
  // Numbers of states of the placement: the present one, which `mutex_` guards, and the one that
  // was saved.
  uint64_t placement_ = 1;
  uint64_t saved_placement_ = 0;
  std::mutex save_mutex_;    // held while the placement is saved; taken before `mutex_`
  bool unheard_ = false;     // no donor of an earlier process has answered yet
  uint64_t lost_ever_ = 0;   // pages that were lost
  uint64_t lost_known_ = 0;  // pages among them that a flush has failed for
  rocegw_memory_statistics counts_{};
  std::atomic<uint64_t> doorbells_{0};
};

}  // namespace rocegw::far
