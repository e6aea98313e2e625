// SPDX-License-Identifier: Apache-2.0
// Completion queues whose event moderation defers, by time. Only queues whose time has come are
// looked at. Belongs to one worker.
#pragma once

#include <cstddef>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/verbs/completion_queue.h"

namespace rocegw::worker {

class DeferredEvents {
 public:
  // Enters the queue if its event is due sooner than when it is looked at.
  void Add(verbs::CompletionQueue& cq);
  // Called before the queue is destroyed.
  void Remove(const verbs::CompletionQueue& cq);
  // Removes and returns a queue whose event is due; nullptr: none.
  verbs::CompletionQueue* TakeDue(TimePoint now);
  // Returns when the next event is due; kNever: none. Exact after TakeDue has returned nullptr.
  TimePoint next() const { return entries_.empty() ? kNever : entries_.front().at; }
  size_t size() const { return entries_.size(); }

 private:
  // Counts only if the queue's `timed_at` is the same: the event may have become due sooner.
  struct Entry {
    TimePoint at;
    verbs::CompletionQueue* cq = nullptr;
  };

  std::vector<Entry> entries_;  // heap, the earliest in front
};

}  // namespace rocegw::worker
