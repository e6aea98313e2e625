// SPDX-License-Identifier: Apache-2.0
// Execution of API writes: plans each on the known fleet, makes it one transaction, and plans again
// after a conflict. Any thread; must outlive its writes; store and follower outlive it.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <variant>

#include "controlplane/api/calls/call.h"
#include "controlplane/api/writes/write.h"
#include "controlplane/store/store.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

struct Written {
  store::Revision revision = 0;
  std::string intent;  // serialized; empty: deleted
};

using PlanOrError = std::variant<Plan, ApiError>;
using WrittenOrError = std::variant<Written, ApiError>;

class Writer {
 public:
  Writer(store::Store& store, sync::FleetFollower& follower) : store_(store), follower_(follower) {}

  using Planner = std::function<PlanOrError(const sync::Fleet&)>;
  using Done = std::function<void(WrittenOrError)>;

  // Writes. `plan` is called on a fleet that includes all writes acknowledged here before, and
  // revision `at_least`; maybe several times. A plan that fails is made again on a fleet that
  // includes all writes acknowledged by any controller, before its error is returned. `done` is
  // called once, on any thread. Without concurrent writes the calling thread waits for the disk.
  void Write(Call call, store::Revision at_least, Planner plan, Done done);
  // Returns what Write would do now, without doing it.
  void Validate(store::Revision at_least, Planner plan, Done done);

 private:
  struct Attempt;
  // Thread that runs a function: a caller may wait there, the follower must not.
  enum class On { kCaller, kFollower };
  // Calls when the fleet is as new as a write needs. A revision that the store has not reached is
  // not waited for: clients can send any etag.
  void WhenFresh(store::Revision at_least, std::function<void(On)> call);
  void Try(const std::shared_ptr<Attempt>& attempt, On thread);
  // Handles a plan that failed. If the write was done before under the same request_id, its answer
  // is returned. If the fleet was behind the store, the attempt goes on. Otherwise it ends.
  void RefuseOrAnswer(const std::shared_ptr<Attempt>& attempt, ApiError error);
  static void AnswerAgain(const Attempt& attempt, const controlplane::v1::RequestRecord& record,
                          store::Revision revision);
  void OnResult(const std::shared_ptr<Attempt>& attempt,
                const StatusOr<store::TransactionResult>& result);

  store::Store& store_;
  sync::FleetFollower& follower_;
  std::atomic<store::Revision> acknowledged_{0};
};

}  // namespace rocegw::api
