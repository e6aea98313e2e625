// SPDX-License-Identifier: Apache-2.0
// Decides whether one more node may go out of service. Pure; any thread.
#pragma once

#include <string>

#include "controlplane/migration/drive/record.h"
#include "controlplane/migration/plan/plan.h"

namespace rocegw::migration {

// Returns true if the node is out of service, or may be: its steps run, or a person has to look.
bool CountsAsUnavailable(const NodeRecord& node);

// Nodes that are unavailable, counted once per decision and kept up to date with each start.
class Availability {
 public:
  Availability(const Plan& plan, const Record& record);

  bool MayTake(uint32_t node) const;
  void Take(uint32_t node);
  uint32_t unavailable() const { return unavailable_; }

 private:
  const Plan& plan_;
  const uint32_t most_;
  uint32_t unavailable_ = 0;
  bool quorum_touched_ = false;
  bool several_domains_ = false;
  std::string domain_;  // shared by the unavailable nodes
};

}  // namespace rocegw::migration
