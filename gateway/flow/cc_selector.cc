// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/cc_selector.h"

#include <iterator>

namespace rocegw::flow {
namespace {

constexpr std::string_view kSignNames[] = {"always", "cnps",  "marks",
                                           "hints",  "delay", "unmarked_loss"};

// Returns true if part / whole is at least permille / 1000; floating point, so it cannot overflow.
bool ShareAtLeast(uint64_t part, uint64_t whole, uint32_t permille) {
  return part != 0 && static_cast<double>(part) * 1000 >= static_cast<double>(whole) * permille;
}

}  // namespace

std::string_view NameOf(CcSign sign) { return kSignNames[static_cast<size_t>(sign)]; }

bool FindCcSign(std::string_view name, CcSign& sign) {
  for (size_t i = 0; i < std::size(kSignNames); ++i) {
    if (kSignNames[i] != name) continue;
    sign = static_cast<CcSign>(i);
    return true;
  }
  return false;
}

CcSelector::CcSelector(const CcPolicy& policy, CcKind otherwise, TimePoint now)
    : policy_(policy),
      current_(otherwise),
      next_look_(now + policy.interval),
      last_switch_(now - policy.dwell) {
  for (size_t i = 0; i < policy_.count && reason_ == CcPolicy::kMostRules; ++i) {
    if (policy_.rules[i].sign != CcSign::kAlways) continue;
    reason_ = i;
    current_ = policy_.rules[i].algorithm;
  }
}

bool CcSelector::Holds(const CcRule& rule, const CcCounts& since, const CcCounts& counts) {
  switch (rule.sign) {
    case CcSign::kAlways:
      return true;
    case CcSign::kCnps:
      return since.cnps >= rule.threshold && since.cnps != 0;
    case CcSign::kMarks:
      return ShareAtLeast(since.marked_bytes, since.acked_bytes, rule.threshold);
    case CcSign::kHints:
      return ShareAtLeast(since.hinted_bytes, since.acked_bytes, rule.threshold);
    case CcSign::kDelay:
      return since.acked_bytes != 0 && counts.shortest.ns > 0 &&
             counts.rtt.ns / static_cast<double>(counts.shortest.ns) * 100 >= rule.threshold;
    case CcSign::kUnmarkedLoss:
      return since.losses >= rule.threshold && since.losses != 0 && since.marked_bytes == 0 &&
             since.cnps == 0;
  }
  return false;
}

CcKind CcSelector::Look(const CcCounts& counts, TimePoint now) {
  if (!DueToLook(now)) return current_;
  next_look_ = now + policy_.interval;
  const CcCounts since{.acked_bytes = counts.acked_bytes - before_.acked_bytes,
                       .marked_bytes = counts.marked_bytes - before_.marked_bytes,
                       .hinted_bytes = counts.hinted_bytes - before_.hinted_bytes,
                       .cnps = counts.cnps - before_.cnps,
                       .losses = counts.losses - before_.losses};
  before_ = counts;
  size_t winner = CcPolicy::kMostRules;
  for (size_t i = 0; i < policy_.count; ++i) {
    if (Holds(policy_.rules[i], since, counts)) forget_[i] = now + policy_.remember;
    if (winner == CcPolicy::kMostRules && forget_[i] >= now) winner = i;
  }
  if (winner == CcPolicy::kMostRules || policy_.rules[winner].algorithm == current_) {
    if (winner != CcPolicy::kMostRules) reason_ = winner;
    agreed_ = 0;
    return current_;
  }
  agreed_ = winner == candidate_ ? agreed_ + 1 : 1;
  candidate_ = winner;
  if (agreed_ < policy_.confirm || now - last_switch_ < policy_.dwell) return current_;
  current_ = policy_.rules[winner].algorithm;
  reason_ = winner;
  last_switch_ = now;
  agreed_ = 0;
  ++switches_;
  return current_;
}

}  // namespace rocegw::flow
