// SPDX-License-Identifier: Apache-2.0
// Doorbells of the programs. The pages of active sessions are scanned every iteration; programs of
// other sessions write their eventfd. Belongs to one worker.
#pragma once

#include <vector>

#include "gateway/metrics/worker_counters.h"
#include "gateway/transport/outbox.h"
#include "gateway/worker/objects/qp_activity.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/round.h"

namespace rocegw::worker {

class DoorbellScan {
 public:
  // Parts of the worker that the scan uses; they must outlive it.
  struct Uses {
    SessionTable& sessions;
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    transport::Outbox& outbox;
    const Round& round;
    metrics::WorkerCounters& counters;
  };
  explicit DoorbellScan(const Uses& uses) : uses_(uses) { rung_.reserve(ROCEGW_DOORBELL_BITS); }

  void AddSession(WorkerSession& session) { active_.push_back(&session); }
  void RemoveSession(const WorkerSession& session) { std::erase(active_, &session); }

  // Takes the doorbells of active sessions. Returns true if there may be more at once.
  bool Take(TimePoint now);
  // Makes all programs write their eventfd from now on, then checks once more. Returns true if
  // there is work.
  bool TakeLast(TimePoint now);
  // Handles a write to the session's eventfd.
  void OnWake(SessionId session, TimePoint now);

 private:
  bool TakeFrom(WorkerSession& session, TimePoint now, bool all);
  void HandleRung(const WorkerSession& session);
  bool TakeAll(WorkerSession& session, bool all);
  bool GoesIdle(WorkerSession& session, TimePoint now);

  const Uses uses_;
  std::vector<WorkerSession*> active_;
  std::vector<SlotHandle> rung_;  // queue pairs of the doorbells being taken
};

}  // namespace rocegw::worker
