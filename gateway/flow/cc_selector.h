// SPDX-License-Identifier: Apache-2.0
// Selector of the algorithm for a class of flows by observed congestion. A policy is an ordered
// list of rules; the first rule whose sign was seen recently decides. A pure function of counters
// and time: the owner of the flows counts, asks, and switches them (Flow::SwitchCc). Signs count
// for a while, a choice must hold for several evaluations, and switches are far apart, so that
// flows do not oscillate on a network between two signs. Belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/base/time.h"
#include "gateway/flow/cc_profile.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::flow {

enum class CcSign : uint8_t {
  kAlways,
  kCnps,          // the peer sent at least `threshold` CNPs
  kMarks,         // at least `threshold` of 1000 acknowledged bytes were marked
  kHints,         // at least `threshold` of 1000 acknowledged bytes came with a hint
  kDelay,         // the round trip is at least `threshold` percent of the shortest
  kUnmarkedLoss,  // at least `threshold` losses, and neither marks nor CNPs
};

std::string_view NameOf(CcSign sign);
// Returns false if there is no such sign.
bool FindCcSign(std::string_view name, CcSign& sign);

struct CcRule {
  CcSign sign = CcSign::kAlways;
  uint32_t threshold = 1;
  CcKind algorithm = CcKind::kStatic;

  bool operator==(const CcRule&) const = default;
};

struct CcPolicy {
  static constexpr size_t kMostRules = 8;
  std::array<CcRule, kMostRules> rules{};
  size_t count = 0;
  Duration interval = Milliseconds(10);  // between evaluations
  uint32_t confirm = 3;                  // evaluations for which a choice must hold
  Duration remember = Seconds(10);       // time for which a sign counts
  Duration dwell = Seconds(1);           // least time between switches

  bool operator==(const CcPolicy&) const = default;
  void Add(const CcRule& rule) {
    if (count < kMostRules) rules[count++] = rule;
  }
};

// Sums over all flows of the class since its start, and its latest round trips.
struct CcCounts {
  uint64_t acked_bytes = 0;
  uint64_t marked_bytes = 0;
  uint64_t hinted_bytes = 0;
  uint64_t cnps = 0;
  uint64_t losses = 0;
  Duration rtt;       // 0: unknown
  Duration shortest;  // 0: unknown

  // Writes or reads the counts (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);
};

class CcSelector {
 public:
  // Starts with the first rule of sign kAlways, or with `otherwise` if there is none.
  CcSelector(const CcPolicy& policy, CcKind otherwise, TimePoint now);

  // Evaluates the counts, at most once per interval. Returns the algorithm that the class should
  // run.
  CcKind Look(const CcCounts& counts, TimePoint now);
  // Returns false if Look would not evaluate.
  bool DueToLook(TimePoint now) const { return now >= next_look_; }
  CcKind current() const { return current_; }
  // Returns the rule behind the current choice, for diagnostics; nullptr: none.
  const CcRule* reason() const {
    return reason_ < policy_.count ? &policy_.rules[reason_] : nullptr;
  }
  uint32_t switches() const { return switches_; }
  // Writes or reads the observations. If the reader has other rules, it begins to observe anew.
  void HandOver(hand_over::StateStream& state);

 private:
  static bool Holds(const CcRule& rule, const CcCounts& since, const CcCounts& counts);

  CcPolicy policy_;
  CcKind current_;
  size_t reason_ = CcPolicy::kMostRules;
  CcCounts before_;
  TimePoint next_look_;
  TimePoint last_switch_;
  std::array<TimePoint, CcPolicy::kMostRules>
      forget_{};  // time until which each rule's sign counts
  size_t candidate_ = CcPolicy::kMostRules;
  uint32_t agreed_ = 0;
  uint32_t switches_ = 0;
};

}  // namespace rocegw::flow
