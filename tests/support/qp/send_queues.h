// SPDX-License-Identifier: Apache-2.0
// Send queues without queue pairs, for tests and benchmarks of the path from a program's post to
// the worker: the daemon's segment, the library's rings on a second mapping, and a reader that
// takes doorbells and requests round-robin, as the worker does. One SendQueues stands for one
// attached process, since each process has its own segment.
//
// Threads: each Client object belongs to one producer; everything else belongs to one reader. A
// forked child makes its own ClientMapping. Errors end the program.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "gateway/client/rings/map_rings.h"
#include "gateway/shm/doorbell.h"
#include "gateway/shm/segment.h"
#include "gateway/shm/work_queue.h"

namespace rocegw::testing {

class SendQueues {
 public:
  SendQueues(uint32_t queues, uint32_t entries);

  // Chunks of the segment as a program maps them: a second mapping in which memory that the daemon
  // writes is read-only.
  class ClientMapping {
   public:
    explicit ClientMapping(const SendQueues& queues);
    ~ClientMapping();
    ClientMapping(const ClientMapping&) = delete;
    ClientMapping& operator=(const ClientMapping&) = delete;

    client::SendRing& ring(uint32_t queue) { return rings_[queue].send; }

   private:
    struct View {
      uint8_t* base;
      uint64_t size;
    };
    std::vector<View> views_;
    std::vector<client::QpRings> rings_;
    client::KeyTable keys_{};
  };

  using Slot = std::array<uint8_t, ROCEGW_CACHE_LINE>;

  struct Found {
    uint32_t requests = 0;
    bool busy = false;  // there were requests, or will be soon
  };

  // Runs one iteration of a worker: takes doorbells, then at most kPerTurn requests of each queue
  // that may have some, and frees their slots. Calls on_request(queue, slot) with a copy of each.
  template <typename F>
  Found Read(TimePoint now, F&& on_request) {
    ++iteration_;
    Found found;
    const auto on_bell = [&](uint32_t bit) {
      if (bit < queues_.size()) MakeRunnable(bit);
    };
    const bool all = iteration_ % kFullScanEvery == 0;
    if (all || pace_.MayTake(now)) {
      const uint32_t taken = all ? shm::TakeAllDoorbells(page(), on_bell)
                                 : shm::TakeDoorbells(page(), iteration_, on_bell);
      if (taken != 0) pace_.Took(now);
    } else {
      found.busy = true;
    }
    for (size_t turns = runnable_.size(); turns > 0; --turns) {
      const uint32_t number = runnable_.front();
      runnable_.pop_front();
      Queue& queue = queues_[number];
      queue.runnable = false;
      uint32_t taken = 0;
      shm::WorkQueue::Look look = queue.view.Check();
      for (; look == shm::WorkQueue::Look::kReady && taken < kPerTurn; look = queue.view.Check()) {
        Slot copy;
        shm::CopyOut(copy.data(), queue.view.Slot(), copy.size());
        queue.view.Fetch();
        ++taken;
        on_request(number, copy);
      }
      queue.failed |= look == shm::WorkQueue::Look::kFault;
      if (taken != 0) queue.view.Release(queue.view.fetched());
      if (look == shm::WorkQueue::Look::kReady) MakeRunnable(number);
      found.requests += taken;
    }
    found.busy |= found.requests != 0;
    return found;
  }

  uint32_t count() const { return static_cast<uint32_t>(queues_.size()); }
  // Returns true if the client stored an impossible index.
  bool failed(uint32_t queue) const { return queues_[queue].failed; }
  // Returns the number of published requests that the reader has not taken.
  uint32_t Waiting(uint32_t queue) const;
  rocegw_worker_line* line() { return line_.As<rocegw_worker_line>(); }

 private:
  // The same value as the worker's.
  static constexpr uint32_t kPerTurn = 32;
  static constexpr uint32_t kFullScanEvery = 4096;

  struct Queue {
    shm::Block control;
    shm::Block status;
    shm::Block slots;
    shm::WorkQueue view;
    bool runnable = false;
    bool failed = false;
  };

  rocegw_doorbell_page* page() { return page_.As<rocegw_doorbell_page>(); }
  void MakeRunnable(uint32_t number) {
    if (queues_[number].runnable) return;
    queues_[number].runnable = true;
    runnable_.push_back(number);
  }

  uint32_t entries_;
  shm::Segment segment_;
  shm::Block page_;
  shm::Block line_;
  std::vector<Queue> queues_;
  std::deque<uint32_t> runnable_;
  shm::DoorbellPace pace_;
  uint32_t iteration_ = 0;
};

}  // namespace rocegw::testing
