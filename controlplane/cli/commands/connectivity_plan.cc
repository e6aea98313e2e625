// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/connectivity_plan.h"

#include <algorithm>
#include <set>

namespace rocegw::cli {
namespace {

std::optional<std::string> FirstUnknown(const std::vector<std::string>& names,
                                        const std::vector<std::string>& fleet) {
  for (const std::string& name : names) {
    if (std::ranges::count(fleet, name) == 0) return name;
  }
  return std::nullopt;
}

}  // namespace

CallResult PlanPairs(const PairsWanted& wanted, const std::vector<std::string>& fleet,
                     std::vector<GatewayPair>& pairs) {
  const bool directed = !wanted.from.empty() || !wanted.to.empty();
  if (int{wanted.all} + int{!wanted.among.empty()} + int{directed} != 1) {
    return {kUsage,
            "which ones? GATEWAY GATEWAY ..., --all, or --from and --to; one of these ways",
            {}};
  }
  for (const auto* names : {&wanted.among, &wanted.from, &wanted.to}) {
    if (const auto unknown = FirstUnknown(*names, fleet))
      return {kNotFound, "there is no " + *unknown, {}};
  }
  const std::vector<std::string>& among = wanted.all ? fleet : wanted.among;
  const std::vector<std::string>& from =
      !directed ? among : (wanted.from.empty() ? fleet : wanted.from);
  const std::vector<std::string>& to = !directed ? among : (wanted.to.empty() ? fleet : wanted.to);
  // A gateway named on both sides is also tested with itself.
  const bool itself = !wanted.from.empty() && !wanted.to.empty();
  if (from.size() * to.size() > kMostPairs + among.size()) {
    return {kUsage,
            std::to_string(from.size() * to.size()) + " pairs are too many (at most " +
                std::to_string(kMostPairs) + "); choose some, or --from one to all others",
            {}};
  }
  std::set<GatewayPair> seen;
  for (const std::string& one : from) {
    for (const std::string& other : to) {
      if ((one != other || itself) && seen.insert({one, other}).second)
        pairs.emplace_back(one, other);
    }
  }
  if (pairs.empty()) return {kUsage, "that makes no pair: two gateways are needed", {}};
  return {};
}

std::optional<size_t> PairSchedule::Begin() {
  for (size_t i = 0; i < pairs_.size(); ++i) {
    if (begun_[i] || busy_[pairs_[i].first] || busy_[pairs_[i].second]) continue;
    busy_[pairs_[i].first] = busy_[pairs_[i].second] = true;
    begun_[i] = true;
    --left_;
    return i;
  }
  return std::nullopt;
}

void PairSchedule::End(size_t pair) {
  busy_[pairs_[pair].first] = busy_[pairs_[pair].second] = false;
}

}  // namespace rocegw::cli
