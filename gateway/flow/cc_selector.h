// SPDX-License-Identifier: Apache-2.0
// Which algorithm a class of flows should run, by what is observed: a policy is an ordered list of
// rules, and the first whose sign of congestion was seen lately wins. A pure function of counters
// and time: whoever owns the flows counts, asks, and switches them (Flow::SwitchCc). Signs are
// remembered for a while, a choice has to hold for several looks, and choices are far apart, so
// that a network at the edge of two signs does not make flows swing. One worker's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gateway/base/time.h"
#include "gateway/flow/cc_profile.h"

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
// False: there is no such sign.
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
  Duration interval = Milliseconds(10);  // between looks
  uint32_t confirm = 3;                  // looks that a choice has to hold
  Duration remember = Seconds(10);       // how long a sign counts
  Duration dwell = Seconds(1);           // between switches at least

  bool operator==(const CcPolicy&) const = default;
  void Add(const CcRule& rule) {
    if (count < kMostRules) rules[count++] = rule;
  }
};

// Sums over all flows of the class since it exists, and its latest round trips.
struct CcCounts {
  uint64_t acked_bytes = 0;
  uint64_t marked_bytes = 0;
  uint64_t hinted_bytes = 0;
  uint64_t cnps = 0;
  uint64_t losses = 0;
  Duration rtt;       // 0: not known
  Duration shortest;  // 0: not known
};

class CcSelector {
 public:
  // Starts with the first rule that always holds; `otherwise` when there is none.
  CcSelector(const CcPolicy& policy, CcKind otherwise, TimePoint now);

  // What the class should run from now on. Looks at the counts once per interval.
  CcKind Look(const CcCounts& counts, TimePoint now);
  // False: Look would not look.
  bool DueToLook(TimePoint now) const { return now >= next_look_; }
  CcKind current() const { return current_; }
  // The rule behind the current choice, for a person to read; nullptr: no rule.
  const CcRule* reason() const {
    return reason_ < policy_.count ? &policy_.rules[reason_] : nullptr;
  }
  uint32_t switches() const { return switches_; }

 private:
  static bool Holds(const CcRule& rule, const CcCounts& since, const CcCounts& counts);

  CcPolicy policy_;
  CcKind current_;
  size_t reason_ = CcPolicy::kMostRules;
  CcCounts before_;
  TimePoint next_look_;
  TimePoint last_switch_;
  std::array<TimePoint, CcPolicy::kMostRules> forget_{};  // until when a sign counts
  size_t candidate_ = CcPolicy::kMostRules;
  uint32_t agreed_ = 0;
  uint32_t switches_ = 0;
};

}  // namespace rocegw::flow
