// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/commitments.h"

#include <gtest/gtest.h>

namespace rocegw::tenant {
namespace {

TEST(Commitments, Overflow_SaysWhoseBoundAndHowMuch) {
  Commitments sums;
  Amounts capacity = Amounts::Of(kUnlimited);
  capacity[Rate::kBytes] = 10;
  sums.SetCapacity(capacity);
  Quota quota;
  quota.committed[Rate::kBytes] = 11;
  sums.SetTenant("tenants/a", quota);
  const auto over = sums.Check();
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(LimitName(over->limit), "bytes_per_second");
  EXPECT_EQ(over->tenant, "");
  EXPECT_EQ(over->sum, 11u);
  EXPECT_EQ(over->bound, 10u);
  sums.RemoveTenant("tenants/a");
  EXPECT_FALSE(sums.Check().has_value());
}

}  // namespace
}  // namespace rocegw::tenant
