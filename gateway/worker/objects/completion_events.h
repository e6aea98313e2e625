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

  // Returns when the next deferred event is due, or a full channel is tried again; kNever: none.
  TimePoint NextDue() const;

 private:
  // A program that does not read its events must not cost the worker more than a few attempts.
  static constexpr Duration kFirstRetry = Microseconds(100);
  static constexpr Duration kLongestRetry = Milliseconds(10);

  // Event channel that was full. Queues wait for it in the order of their events.
  struct FullChannel {
    int event_fd;
    std::vector<verbs::CompletionQueue*> queues;
    Duration wait = kFirstRetry;
    TimePoint retry;
  };

  bool TrySend(verbs::CompletionQueue& cq);
  void SendToFull(FullChannel& full);
  void WaitForSpace(verbs::CompletionQueue& cq, TimePoint retry);
  FullChannel* FindFull(const verbs::CompletionQueue& cq);

  const SessionTable& sessions_;
  Scheduler& scheduler_;
  const Round& round_;
  metrics::WorkerCounters& counters_;
  std::vector<verbs::CompletionQueue*> written_;
  std::vector<verbs::CompletionQueue*> timed_;  // deferred by moderation
  std::vector<FullChannel> full_;
};

}  // namespace rocegw::worker
