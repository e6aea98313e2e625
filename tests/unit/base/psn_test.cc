// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/psn.h"

#include <gtest/gtest.h>

#include "gateway/base/ids.h"

namespace rocegw {
namespace {

TEST(Psn, Arithmetic_WrapsAt24Bits) {
  EXPECT_EQ(Psn(0xFFFFFF) + 1, Psn(0));
  EXPECT_EQ(Psn(0) - 1, Psn(0xFFFFFF));
  EXPECT_EQ(Psn(0xFFFFF0) + 0x20, Psn(0x10));
  EXPECT_EQ(Psn(5) + (1u << 24), Psn(5));
  EXPECT_EQ(Psn(0x12FFFFFF).value, 0xFFFFFFu);
}

TEST(Psn, Distance_IsSignedAcrossTheWrap) {
  EXPECT_EQ(PsnDistance(Psn(1), Psn(0xFFFFFF)), 2);
  EXPECT_EQ(PsnDistance(Psn(0xFFFFFF), Psn(1)), -2);
  EXPECT_EQ(PsnDistance(Psn(7), Psn(7)), 0);
  EXPECT_EQ(PsnDistance(Psn(kPsnWindow - 1), Psn(0)), (1 << 23) - 1);
  EXPECT_EQ(PsnDistance(Psn(kPsnWindow), Psn(0)), -(1 << 23));
}

TEST(Psn, Order_IsThatOfTheNearerSide) {
  for (const uint32_t base : {0u, 1u, 0x7FFFFFu, 0x800000u, 0xFFFFFEu, 0xFFFFFFu}) {
    for (const uint32_t step : {1u, 2u, 1000u, kPsnWindow - 1}) {
      EXPECT_TRUE(PsnAfter(Psn(base) + step, Psn(base))) << base << ' ' << step;
      EXPECT_FALSE(PsnBefore(Psn(base) + step, Psn(base))) << base << ' ' << step;
      EXPECT_TRUE(PsnBefore(Psn(base) - step, Psn(base))) << base << ' ' << step;
      EXPECT_EQ(PsnDistance(Psn(base) + step, Psn(base)), static_cast<int32_t>(step));
      EXPECT_EQ(PsnDistance(Psn(base) - step, Psn(base)), -static_cast<int32_t>(step));
    }
    EXPECT_FALSE(PsnAfter(Psn(base), Psn(base)));
    EXPECT_FALSE(PsnBefore(Psn(base), Psn(base)));
  }
}

TEST(Qpn, SpecialNumbers_AreThoseOfTheSpecification) {
  EXPECT_EQ(kInvalidQpn.value, 0u);
  EXPECT_EQ(kGsiQpn.value, 1u);
  EXPECT_EQ(kMulticastQpn.value, 0xFFFFFFu);
}

}  // namespace
}  // namespace rocegw
