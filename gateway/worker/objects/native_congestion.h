// SPDX-License-Identifier: Apache-2.0
// Class of native connections of a worker: what its congestion control observes, and the switch
// when the policy chooses another algorithm. Belongs to one worker.
#pragma once

#include "gateway/flow/cc_class.h"
#include "gateway/flow/congestion.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/objects/qp_activity.h"

namespace rocegw::worker {

class NativeCongestion {
 public:
  // Rules of the policy select another algorithm than that of `config` by observation; without
  // rules it stays. The queue pairs' parts and the counters must outlive the object.
  NativeCongestion(const flow::CcConfig& config, const flow::CcPolicy& policy, QpTable& qps,
                   QpActivity& activity, metrics::WorkerCounters& counters, TimePoint start);

  // Returns the configuration for a queue pair.
  flow::CcConfig ConfigOf(const verbs::QpRareConfig& qp) const;
  flow::CcKind current() const { return class_.current(); }

  // Observes now and then, and switches some queue pairs at a time.
  void Look(TimePoint now) {
    if (has_rules_) LookByRules(now);
  }
  void HandOver(hand_over::StateStream& state);

 private:
  void LookByRules(TimePoint now);
  flow::CcCounts Counts() const;

  const flow::CcConfig config_;
  const bool has_rules_;
  QpTable& qps_;
  QpActivity& activity_;
  metrics::WorkerCounters& counters_;
  flow::CcCounts before_;  // sums of the gateways before this one
  flow::CcClass class_;
};

}  // namespace rocegw::worker
