// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/request_times.h"

namespace rocegw::worker {
namespace {

constexpr Duration kReportEvery = Milliseconds(100);

}  // namespace

void RequestTimes::Report(WorkerSession& session) {
  if (session.link.share != nullptr) session.link.share->operations.Add(session.operations);
  session.operations = {};
}

void RequestTimes::Report(TimePoint now) {
  for (WorkerSession* const session : with_times_) Report(*session);
  with_times_.clear();
  due_ = now + kReportEvery;
}

void RequestTimes::Remove(WorkerSession& session) {
  if (std::erase(with_times_, &session) != 0) Report(session);
}

}  // namespace rocegw::worker
