// SPDX-License-Identifier: Apache-2.0
// Every transition with every combination of attributes, compared with the table of IBTA 11.2.5.2.
#include "gateway/verbs/qp_state.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "tests/support/qp/qp_transition_table.h"

namespace rocegw::verbs {
namespace {

using S = QpState;

// Attributes that no table allows: alternate paths, their migration, sizes, rate, undefined bits.
constexpr uint32_t kNever = kAttrAltPath | kAttrPathMigState | kAttrCap | 0xFFE00000;

// Calls each(mask) for all masks with bits of `within` only.
template <typename Each>
void EveryMask(uint32_t within, Each each) {
  for (uint32_t mask = 0;; mask = (mask - within) & within) {
    each(mask);
    if (mask == within) return;
  }
}

void CheckAll(QpType type) {
  for (const S from : testing::kQpStates) {
    for (const S to : testing::kQpStates) {
      SCOPED_TRACE(std::string(StateName(from)) + " to " + StateName(to));
      const auto rule = testing::RuleOf(type, from, to);
      const auto allowed = [&](uint32_t mask) {
        return rule && (mask & rule->must) == rule->must && (mask & ~(rule->must | rule->may)) == 0;
      };
      uint32_t wrong = 0;
      uint32_t example = 0;
      EveryMask(0x1FFFFF & ~kNever & ~kAttrState, [&](uint32_t mask) {
        const int expected = allowed(mask) ? 0 : EINVAL;
        if (CheckTransition(type, from, to, mask | kAttrState) != expected ||
            CheckTransition(type, from, to, mask) != expected) {
          ++wrong;
          example = mask;
        }
      });
      EXPECT_EQ(wrong, 0u) << "masks, among them " << std::hex << example;
      if (!rule) continue;
      for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        if ((kNever & bit) == 0) continue;
        EXPECT_EQ(CheckTransition(type, from, to, rule->must | bit), EINVAL) << std::hex << bit;
      }
    }
  }
}

TEST(QpState, Rc_EveryTransitionAndMask) { CheckAll(QpType::kRc); }
TEST(QpState, Uc_EveryTransitionAndMask) { CheckAll(QpType::kUc); }
TEST(QpState, Ud_EveryTransitionAndMask) { CheckAll(QpType::kUd); }

TEST(QpState, XrcSend_EveryTransitionAndMask) { CheckAll(QpType::kXrcSend); }
TEST(QpState, XrcReceive_EveryTransitionAndMask) { CheckAll(QpType::kXrcReceive); }

TEST(QpState, Names) {
  EXPECT_EQ(StateName(S::kReset), std::string_view("RESET"));
  EXPECT_EQ(StateName(S::kError), std::string_view("ERR"));
  EXPECT_EQ(StateName(static_cast<S>(7)), std::string_view("invalid"));
}

}  // namespace
}  // namespace rocegw::verbs
