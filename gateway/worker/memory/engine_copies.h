// SPDX-License-Identifier: Apache-2.0
// Writes of a worker's bursts to remapped regions, made by a copy engine while the worker processes
// the next datagrams of the burst. Belongs to one worker.
//
// Order: all copies of a session end before its next operation of another kind is executed and
// before any of its operations is reported. The last bytes of a published write are stored by the
// processor after all earlier writes of the session. A write that touches bytes of an earlier one
// is not taken.
//
// Lifetime: no copy outlives the burst (MemoryExecutor::Flush). Source packets, regions, sessions
// and the state for a hand-over are therefore never in use by the engine where they may be
// released.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/memory/copy_engine.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

class EngineCopies {
 public:
  // After so many failed copies in a row the worker does without the engine for some bursts. Not
  // for ever, because a program can cause failures, for example by pages that are not there yet.
  static constexpr uint32_t kMostFailures = 16;
  static constexpr uint32_t kBurstsWithout = 4096;

  EngineCopies(const memory::CopySettings& settings, metrics::WorkerCounters& counters);

  // Begins a burst of at most so many datagrams; 0: none.
  void BeginBurst(uint32_t datagrams) {
    in_use_ = queue_ != nullptr && !abandoned_ && datagrams > last_by_processor_;
    if (in_use_ && failures_ >= kMostFailures) {
      in_use_ = ++bursts_without_ == kBurstsWithout;
      if (in_use_) failures_ = bursts_without_ = 0;
    }
    left_ = datagrams;
  }
  // Notes that the next datagram of the burst is being processed.
  void NextDatagram() {
    if (left_ != 0) --left_;
  }

  // Takes a write to memory that the gateway has mapped. Returns false if the operation must wait
  // behind those that were taken. All earlier operations of the session must have been taken.
  bool Take(WorkerSession& session, const memory::MemoryOp& op, const transport::AccessTag& tag) {
    return in_use_ && TakeWrite(session, op, tag);
  }

  // Ends the session's copies: makes those that the engine did not get, waits for the engine, makes
  // copies that failed, and stores the last bytes of published writes. All its operations are
  // executed then.
  void Finish(WorkerSession& session);

 private:
  struct Slot {
    WorkerSession* session = nullptr;
    uint32_t op = 0;  // in its EngineOps
  };

  bool TakeWrite(WorkerSession& session, const memory::MemoryOp& op,
                 const transport::AccessTag& tag);
  bool Overlaps(const EngineOps& taken, const memory::MemoryOp& op) const;
  bool GiveToEngine(WorkerSession& session, const memory::MemoryOp& op);
  bool Poll();
  void End(uint32_t cookie, bool copied);
  void CopyOthers(WorkerSession& session);
  void Await(const EngineOps& taken);
  void GiveUp();

  memory::CopyQueue* const queue_;
  const uint32_t minimum_;
  const uint32_t last_by_processor_;
  const uint32_t most_of_pool_;
  metrics::WorkerCounters& counters_;
  bool in_use_ = false;  // by the current burst
  uint32_t left_ = 0;    // datagrams of the burst after the current one
  uint32_t queued_ = 0;  // copies that were not started
  uint32_t failures_ = 0;
  uint32_t bursts_without_ = 0;
  bool abandoned_ = false;      // the engine has not answered and is never used again
  std::vector<Slot> slots_;     // by cookie
  std::vector<uint32_t> free_;  // cookies
};

}  // namespace rocegw::worker
