// SPDX-License-Identifier: Apache-2.0
// Rules for attaches to pools with identity: REQUIRED. The source of verdicts is an interface; the
// implementation here uses the rules of the agent's configuration: users and cgroups. An attach
// that no rule allows is denied. Plain values, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rocegw/gateway/v1/identity.pb.h"

namespace rocegw::agent {

struct Verdict {
  bool allowed = false;
  std::string reason;                   // reason for a refusal, for display
  gateway::v1::SlotLimits limits = {};  // for all programs at the attach socket together
};

class VerdictSource {
 public:
  virtual ~VerdictSource() = default;
  // Calls `done` once, now or later on the same thread.
  virtual void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) = 0;
};

// All conditions of a rule must hold.
struct AttachRule {
  std::string pool;                  // "tenants/T/pools/P"
  std::vector<uint32_t> uids;        // any of them; empty: all users
  std::vector<std::string> cgroups;  // in or below any of them; empty: all cgroups
  bool operator==(const AttachRule&) const = default;
};

class RuleVerdicts final : public VerdictSource {
 public:
  explicit RuleVerdicts(std::vector<AttachRule> rules) : rules_(std::move(rules)) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override {
    done(Decide(attach));
  }
  Verdict Decide(const gateway::v1::HeldAttach& attach) const;
  // Replaces the rules for later attaches. Returns false if they are unchanged.
  bool Replace(std::vector<AttachRule> rules) {
    if (rules == rules_) return false;
    rules_ = std::move(rules);
    return true;
  }

 private:
  std::vector<AttachRule> rules_;
};

}  // namespace rocegw::agent
