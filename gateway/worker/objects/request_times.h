// SPDX-License-Identifier: Apache-2.0
// Times that requests took, which the pools report. Collected by session and added to the pools now
// and then, because all workers write the same few cache lines. Belongs to one worker.
#pragma once

#include <vector>

#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

class RequestTimes {
 public:
  void Add(WorkerSession& session, Duration took) {
    if (session.operations.count() == 0) with_times_.push_back(&session);
    session.operations.Add(took);
  }
  // Reports all times.
  void Report(TimePoint now);
  void ReportIfDue(TimePoint now) {
    if (now >= due_) Report(now);
  }
  // Reports the session's times; called before it is removed.
  void Remove(WorkerSession& session);

 private:
  static void Report(WorkerSession& session);

  std::vector<WorkerSession*> with_times_;
  TimePoint due_;
};

}  // namespace rocegw::worker
