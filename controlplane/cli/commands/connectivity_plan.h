// SPDX-License-Identifier: Apache-2.0
// Pairs of gateways for `connectivity test`, and their schedule: several at a time, but no gateway
// in two at once, which would disturb each other's measurement. Pure; callers lock.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

struct PairsWanted {
  std::vector<std::string> among;  // each with each other
  bool all = false;                // all of the fleet with each other
  std::vector<std::string> from;   // with `to`; one of them alone: with all others
  std::vector<std::string> to;
};

using GatewayPair = std::pair<std::string, std::string>;  // from, to

// Limit of pairs: more would take an hour.
inline constexpr size_t kMostPairs = 2500;

// Returns the pairs in the requested order, each once; a gateway with itself only if from and to
// name it. Names are "gateways/G". `fleet`: all gateways.
CallResult PlanPairs(const PairsWanted& wanted, const std::vector<std::string>& fleet,
                     std::vector<GatewayPair>& pairs);

class PairSchedule {
 public:
  explicit PairSchedule(std::vector<GatewayPair> pairs) : pairs_(std::move(pairs)) {
    begun_.resize(pairs_.size());
  }
  // Returns the index of the first pair without a busy gateway; nothing: none now.
  std::optional<size_t> Begin();
  void End(size_t pair);
  // Returns true if all pairs were begun.
  bool Exhausted() const { return left_ == 0; }
  const GatewayPair& pair(size_t index) const { return pairs_[index]; }
  size_t size() const { return pairs_.size(); }

 private:
  const std::vector<GatewayPair> pairs_;
  std::vector<bool> begun_;
  size_t left_ = pairs_.size();
  std::map<std::string, bool> busy_;
};

}  // namespace rocegw::cli
