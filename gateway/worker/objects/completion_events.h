// SPDX-License-Identifier: Apache-2.0
// Events of completion queues that were written in this iteration, or whose event moderation or a
// full channel has deferred. Belongs to one worker.
#pragma once

#include <vector>

#include "gateway/metrics/worker_counters.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/round.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class CompletionEvents {
 public:
  // The arguments must outlive the object.
  CompletionEvents(const SessionTable& sessions, Scheduler& scheduler, const Round& round,
                   metrics::WorkerCounters& counters)
      : sessions_(sessions), scheduler_(scheduler), round_(round), counters_(counters) {}

  void Add(verbs::CompletionQueue& cq) { cq.fresh_list = &written_; }
  // Lists a queue whose state was read, if its event is deferred or waits for space.
  void Resume(verbs::CompletionQueue& cq);
  // Called before the queue is destroyed.
  void Remove(const verbs::CompletionQueue& cq);

  // Wakes pollers and sends the events that are due.
  void Send();
  // Sends the queue's event if it is due now.
  void SendIfDue(verbs::CompletionQueue& cq);

  // Returns the time of the next deferred event; kNever: none.
  TimePoint NextDue() const;
  // Returns true if events wait for space in their channel.
  bool has_unsent() const { return !unsent_.empty(); }

 private:
  bool TrySend(verbs::CompletionQueue& cq);

  const SessionTable& sessions_;
  Scheduler& scheduler_;
  const Round& round_;
  metrics::WorkerCounters& counters_;
  std::vector<verbs::CompletionQueue*> written_;
  std::vector<verbs::CompletionQueue*> timed_;   // deferred by moderation
  std::vector<verbs::CompletionQueue*> unsent_;  // due, but their channel was full
};

}  // namespace rocegw::worker
