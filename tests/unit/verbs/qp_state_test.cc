// SPDX-License-Identifier: Apache-2.0
// Every transition with every attribute against the table of IBTA 11.2.5.2, written down here as
// the sets that must and may be given. Alternate paths are not offered.
#include "gateway/verbs/qp_state.h"

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <optional>
#include <string_view>

namespace rocegw::verbs {
namespace {

constexpr uint32_t kAllBits = 21;
using S = QpState;
constexpr S kStates[] = {S::kReset, S::kInit, S::kRtr, S::kRts, S::kSqd, S::kSqe, S::kError};

struct Rule {
  uint32_t must = 0;
  uint32_t may = 0;
};

std::optional<Rule> RcRule(S from, S to) {
  if (to == S::kReset || to == S::kError) return Rule{0, kAttrCurState};
  constexpr uint32_t kBasic = kAttrPkeyIndex | kAttrPort | kAttrAccessFlags;
  constexpr uint32_t kRunning = kAttrCurState | kAttrAccessFlags | kAttrMinRnrTimer;
  if (from == S::kReset && to == S::kInit) return Rule{kBasic, 0};
  if (from == S::kInit && to == S::kInit) return Rule{0, kBasic};
  if (from == S::kInit && to == S::kRtr) {
    return Rule{kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                    kAttrMinRnrTimer,
                kAttrAccessFlags | kAttrPkeyIndex};
  }
  if (from == S::kRtr && to == S::kRts) {
    return Rule{kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
                kRunning};
  }
  if (from == S::kRts && to == S::kRts) return Rule{0, kRunning};
  if (from == S::kRts && to == S::kSqd) return Rule{0, kAttrEnSqdAsyncNotify};
  if (from == S::kSqd && to == S::kRts) return Rule{0, kRunning};
  if (from == S::kSqd && to == S::kSqd) {
    return Rule{0, kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry |
                       kAttrMaxQpRdAtomic | kAttrMaxDestRdAtomic | kAttrAccessFlags |
                       kAttrPkeyIndex | kAttrMinRnrTimer};
  }
  return std::nullopt;
}

std::optional<Rule> UdRule(S from, S to) {
  if (to == S::kReset || to == S::kError) return Rule{0, kAttrCurState};
  constexpr uint32_t kBasic = kAttrPkeyIndex | kAttrPort | kAttrQkey;
  constexpr uint32_t kRunning = kAttrCurState | kAttrQkey;
  if (from == S::kReset && to == S::kInit) return Rule{kBasic, 0};
  if (from == S::kInit && to == S::kInit) return Rule{0, kBasic};
  if (from == S::kInit && to == S::kRtr) return Rule{0, kAttrPkeyIndex | kAttrQkey};
  if (from == S::kRtr && to == S::kRts) return Rule{kAttrSqPsn, kRunning};
  if (from == S::kRts && to == S::kRts) return Rule{0, kRunning};
  if (from == S::kRts && to == S::kSqd) return Rule{0, kAttrEnSqdAsyncNotify};
  if (from == S::kSqd && to == S::kRts) return Rule{0, kRunning};
  if (from == S::kSqd && to == S::kSqd) return Rule{0, kAttrPkeyIndex | kAttrQkey};
  if (from == S::kSqe && to == S::kRts) return Rule{0, kRunning};
  return std::nullopt;
}

void CheckAll(QpType type, std::optional<Rule> (*rule_of)(S, S)) {
  for (const S from : kStates) {
    for (const S to : kStates) {
      SCOPED_TRACE(std::string(StateName(from)) + " to " + StateName(to));
      const std::optional<Rule> rule = rule_of(from, to);
      const auto check = [&](uint32_t mask) {
        return CheckTransition(type, from, to, mask | kAttrState);
      };
      if (!rule) {
        EXPECT_EQ(check(0), EINVAL);
        EXPECT_EQ(check((1u << kAllBits) - 1), EINVAL);
        continue;
      }
      EXPECT_EQ(check(rule->must), 0);
      EXPECT_EQ(check(rule->must | rule->may), 0);
      EXPECT_EQ(CheckTransition(type, from, to, rule->must), 0) << "the state goes without saying";
      for (uint32_t i = 1; i < kAllBits; ++i) {
        const uint32_t bit = 1u << i;
        if ((rule->must & bit) != 0) {
          EXPECT_EQ(check(rule->must & ~bit), EINVAL) << "without " << i;
        }
        EXPECT_EQ(check(rule->must | bit), ((rule->must | rule->may) & bit) != 0 ? 0 : EINVAL)
            << "with " << i;
      }
    }
  }
}

TEST(QpState, Rc_EveryTransitionAndAttribute) { CheckAll(QpType::kRc, RcRule); }
TEST(QpState, Ud_EveryTransitionAndAttribute) { CheckAll(QpType::kUd, UdRule); }

TEST(QpState, Names) {
  EXPECT_EQ(StateName(S::kReset), std::string_view("RESET"));
  EXPECT_EQ(StateName(S::kError), std::string_view("ERR"));
  EXPECT_EQ(StateName(static_cast<S>(7)), std::string_view("invalid"));
}

}  // namespace
}  // namespace rocegw::verbs
