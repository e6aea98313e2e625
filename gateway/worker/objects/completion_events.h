// SPDX-License-Identifier: Apache-2.0
// Events of completion queues that were written in this iteration, or whose event moderation or a
// full channel has deferred. Belongs to one worker.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/metrics/worker_counters.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/worker/objects/deferred_events.h"
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
  // A program that does not read its events must not cost the worker more than a few attempts,
  // however many channels it has.
  static constexpr Duration kFirstRetry = Microseconds(100);
  static constexpr Duration kLongestRetry = Milliseconds(50);
  static constexpr int kChannelsPerRound = 8;

  // Event channel that was full. Queues wait for it in the order of their events, except that a
  // hand-over forgets the order.
  struct FullChannel {
    std::vector<verbs::CompletionQueue*> queues;
    Duration wait = kFirstRetry;
    TimePoint retry;
  };
  using Full = std::unordered_map<int, FullChannel>;  // by event_fd

  bool TrySend(verbs::CompletionQueue& cq);
  void SendToWritten();
  void SendDeferred();
  void SendToFull();
  void SendTo(FullChannel& full);
  void WaitForSpace(verbs::CompletionQueue& cq, TimePoint retry);
  void Forget(Full::iterator channel);

  const SessionTable& sessions_;
  Scheduler& scheduler_;
  const Round& round_;
  metrics::WorkerCounters& counters_;
  std::vector<verbs::CompletionQueue*> written_;
  DeferredEvents deferred_;  // by moderation
  Full full_;
  std::set<std::pair<TimePoint, int>> retries_;  // time and event_fd of each full channel
};

}  // namespace rocegw::worker
