// SPDX-License-Identifier: Apache-2.0
// Who may attach to pools that ask (identity: REQUIRED). Where the knowledge comes from is behind
// an interface; here it is rules of the agent's configuration: users and cgroups. What no rule
// allows is denied. Plain values, any thread.
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
  std::string reason;  // why not, for people
};

class VerdictSource {
 public:
  virtual ~VerdictSource() = default;
  // Calls `done` once, now or later on the same thread.
  virtual void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) = 0;
};

// Everything that a rule says must hold.
struct AttachRule {
  std::string pool;                  // "tenants/T/pools/P"
  std::vector<uint32_t> uids;        // one of them; empty: whoever
  std::vector<std::string> cgroups;  // in or below one of them; empty: wherever
  bool operator==(const AttachRule&) const = default;
};

class RuleVerdicts final : public VerdictSource {
 public:
  explicit RuleVerdicts(std::vector<AttachRule> rules) : rules_(std::move(rules)) {}
  void Ask(const gateway::v1::HeldAttach& attach, std::function<void(Verdict)> done) override {
    done(Decide(attach));
  }
  Verdict Decide(const gateway::v1::HeldAttach& attach) const;
  // For who attaches from now on; false: they are the same.
  bool Replace(std::vector<AttachRule> rules) {
    if (rules == rules_) return false;
    rules_ = std::move(rules);
    return true;
  }

 private:
  std::vector<AttachRule> rules_;
};

}  // namespace rocegw::agent
