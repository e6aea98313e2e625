// SPDX-License-Identifier: Apache-2.0
#include "agent/expose/attach_rules.h"

#include <algorithm>

namespace rocegw::agent {
namespace {

bool IsInOrBelow(const std::string& path, const std::string& above) {
  return path == above || above == "/" || path.starts_with(above + "/");
}

}  // namespace

Verdict RuleVerdicts::Decide(const gateway::v1::HeldAttach& attach) const {
  bool any = false;
  for (const AttachRule& rule : rules_) {
    if (rule.pool != attach.pool()) continue;
    any = true;
    const bool user = rule.uids.empty() || std::ranges::count(rule.uids, attach.uid()) != 0;
    const bool place =
        rule.cgroups.empty() ||
        (!attach.cgroup().empty() && std::ranges::any_of(rule.cgroups, [&](const auto& above) {
          return IsInOrBelow(attach.cgroup(), above);
        }));
    if (user && place) return {true, ""};
  }
  if (!any) return {false, "the agent has no rule for this pool (attach_rules)"};
  return {false, "no rule of the agent allows uid " + std::to_string(attach.uid()) + " in cgroup " +
                     (attach.cgroup().empty() ? "(none)" : attach.cgroup())};
}

}  // namespace rocegw::agent
