// SPDX-License-Identifier: Apache-2.0
// Which pairs of gateways `connectivity test` tries, and in which order: several at a time, but no
// gateway in two at once, which would measure each other. Pure; callers lock.
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
  std::vector<std::string> among;  // every one to every other one
  bool all = false;                // among all of the fleet
  std::vector<std::string> from;   // with `to`; one of the two without the other: all others
  std::vector<std::string> to;
};

using GatewayPair = std::pair<std::string, std::string>;  // from, to

// Beyond, it would be an hour's work; one chooses.
inline constexpr size_t kMostPairs = 2500;

// Names are "gateways/G". fleet: all there are. Each pair once, in the order of what was asked; one
// of a gateway with itself only where from and to name it.
CallResult PlanPairs(const PairsWanted& wanted, const std::vector<std::string>& fleet,
                     std::vector<GatewayPair>& pairs);

class PairSchedule {
 public:
  explicit PairSchedule(std::vector<GatewayPair> pairs) : pairs_(std::move(pairs)) {
    begun_.resize(pairs_.size());
  }
  // The first pair, by index, of which neither is busy. Nothing: there is none now.
  std::optional<size_t> Begin();
  void End(size_t pair);
  // All were begun.
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
