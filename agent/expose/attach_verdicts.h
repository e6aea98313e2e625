// SPDX-License-Identifier: Apache-2.0
// Answers the gateway's attaches that wait for a verdict. One list call is always pending: the
// gateway answers it when an attach arrives. Created, used and destroyed on the agent's loop, which
// outlives it, as do gateway and source.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "agent/expose/attach_rules.h"
#include "agent/reconcile/gateway_port.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::agent {

// Counters for other threads.
struct VerdictCounters {
  std::atomic<uint64_t> allowed{0};
  std::atomic<uint64_t> denied{0};
};

class AttachVerdicts {
 public:
  AttachVerdicts(ControlLoop& loop, GatewayPort& gateway, VerdictSource& source,
                 Duration retry = Seconds(1));
  ~AttachVerdicts();
  AttachVerdicts(const AttachVerdicts&) = delete;
  AttachVerdicts& operator=(const AttachVerdicts&) = delete;

  const VerdictCounters& counters() const { return counters_; }

 private:
  void Ask();
  void Decide(const gateway::v1::HeldAttach& attach);
  void Answer(const gateway::v1::HeldAttach& attach, const Verdict& verdict);

  ControlLoop& loop_;
  GatewayPort& gateway_;
  VerdictSource& source_;
  const Duration retry_;
  VerdictCounters counters_;
  uint64_t after_ = 0;  // highest id of the last answer
  // Ids of the last answer. Not compared by size: a gateway that starts anew after the clock was
  // set back begins with smaller ones.
  std::set<uint64_t> decided_;
  ControlLoop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rocegw::agent
