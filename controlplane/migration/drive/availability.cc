// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/availability.h"

namespace rocegw::migration {

bool CountsAsUnavailable(const NodeRecord& node) {
  return node.activity != Activity::kNone || node.state == NodeState::kQuarantined ||
         node.state == NodeState::kRollbackFailed;
}

Availability::Availability(const Plan& plan, const Record& record)
    : plan_(plan), most_(record.knobs.max_unavailable) {
  for (uint32_t i = 0; i < record.nodes.size(); ++i) {
    if (CountsAsUnavailable(record.nodes[i])) Take(i);
  }
}

bool Availability::MayTake(uint32_t node) const {
  // On a flag day the whole cluster is out of service by plan.
  if (plan_.flag_day) return true;
  if (unavailable_ >= most_) return false;
  const PlannedNode& planned = plan_.nodes[node];
  if (planned.quorum && quorum_touched_) return false;
  if (plan_.per_domain.empty() || unavailable_ == 0) return true;
  return !several_domains_ && planned.domain == domain_;
}

void Availability::Take(uint32_t node) {
  const PlannedNode& planned = plan_.nodes[node];
  several_domains_ = several_domains_ || (unavailable_ != 0 && planned.domain != domain_);
  if (unavailable_ == 0) domain_ = planned.domain;
  ++unavailable_;
  quorum_touched_ = quorum_touched_ || planned.quorum;
}

}  // namespace rocegw::migration
