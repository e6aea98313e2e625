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
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gateway/far/placement/choose_donor.h"
#include "gateway/far/placement/slab.h"
#include "gateway/far/request/admission.h"
#include "gateway/far/request/merge_queue.h"
#include "gateway/far/session/donor_link.h"
#include "gateway/far/session/operation.h"
#include "gateway/far/session/registered_memory.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

class Dispatcher {
 public:
  static constexpr uint32_t kSendDepth = 128;  // transfers in flight for each donor

  // `donor_failed` is called without the lock when a donor's transfer failed: the caretaker ends
  // the connection. `memory` outlives the dispatcher.
  Dispatcher(const Settings& settings, RegisteredMemory& memory,
             std::function<void()> donor_failed);

  // Requests.
  int Submit(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length,
             rocegw_memory_done done, void* argument);
  int SubmitAndWait(Direction direction, uint64_t offset, uint8_t* buffer, uint64_t length);
  void WaitUntilIdle();
  void SetWindow(Admission::WindowHook hook, void* argument);
  void* Allocate(uint64_t bytes);
  void Free(void* memory);
  uint64_t size() const { return slab_bytes_ * settings_.slabs; }

  // Completions, by the pollers: all transfers of one look, then Completed once.
  void OnTransfer(Transfer& transfer, bool ok);
  void Completed();

  // Donors, by the caretaker.
  void LinkUp(uint32_t donor, std::unique_ptr<Connection> connection, const Welcome& welcome);
  // Declares the donor lost: its replicas are not used any more.
  void FailLink(uint32_t donor, bool timed_out);
  // Fails donors that completed nothing for the timeout, and ends connections whose transfers have
  // all completed, or have not within the timeout although they were aborted. `quiet` makes sure
  // that the donor's poller is not handling completions.
  void CheckLinks(const std::function<std::unique_lock<std::mutex>(uint32_t donor)>& quiet);
  std::vector<DonorLink>& links() { return links_; }
  std::mutex& mutex() { return mutex_; }

  // Slabs, by the caretaker.
  std::vector<Slab>& slabs() { return slabs_; }
  void AddReplica(uint32_t slab, const Replica& replica);
  enum class CopyStart : uint8_t { kNothingLeft, kStarted, kLater };
  // Starts the copy of the next written stretch at or behind *position to the donor's replica, and
  // sets *position behind it. kNothingLeft: the replica is live now.
  CopyStart StartCopy(uint32_t slab, uint32_t donor, uint64_t* position,
                      std::function<void(bool copied)> done);

  void AddStatistics(rocegw_memory_statistics& statistics);

 private:
  // Part that completes without a transfer.
  struct Settled {
    Part part;
    int status;
  };
  using Batch = std::vector<Operation*>;

  MergeQueue& Queue(Direction direction) {
    return direction == Direction::kRead ? reads_ : writes_;
  }
  void Drain(Direction direction);
  bool TakeOne(Direction direction, Batch& batch, std::vector<Settled>& settled);
  void Settle(Direction direction, const Slab& slab, const Plan& plan,
              std::vector<Settled>& settled);
  bool Reserve(Operation& operation, const std::vector<Replica>& targets);
  void Start(Operation& operation, const std::vector<Replica>& targets);
  void Send(const Batch& batch);
  uint32_t Segments(const Operation& operation, ibv_sge* segments) const;
  void CopyStaged(const Operation& operation, bool out) const;
  void Finish(Operation* operation);
  void FinishRead(Operation* operation);
  void FinishCopy(Operation* operation, bool ok);
  void Release(const Operation& operation);
  void FinishPart(const Part& part, int status);
  void FailLinkLocked(uint32_t donor, bool timed_out);

  const Settings settings_;
  const uint64_t slab_bytes_;
  RegisteredMemory& memory_;
  const std::function<void()> donor_failed_;

  std::mutex mutex_;
  std::condition_variable less_queued_;
  std::vector<Slab> slabs_;
  std::vector<DonorLink> links_;
  MergeQueue reads_;
  MergeQueue writes_;
  RangeHolds holds_;
  Admission admission_;
  uint64_t queued_bytes_ = 0;  // bytes of requests that are not complete
  uint64_t turn_ = 0;          // distributes reads over replicas
  rocegw_memory_statistics counts_{};
  std::atomic<uint64_t> doorbells_{0};
};

}  // namespace rocegw::far
