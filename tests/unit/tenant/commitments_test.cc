// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/commitments.h"

#include <gtest/gtest.h>

#include "tests/support/committed_cases.h"

namespace rocegw::tenant {
namespace {

using rocegw::testing::CommittedCase;

class CommittedCasesInTheGateway : public ::testing::TestWithParam<CommittedCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, CommittedCasesInTheGateway,
                         ::testing::ValuesIn(rocegw::testing::CommittedCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(CommittedCasesInTheGateway, FitsOrNot) {
  const CommittedCase& one = GetParam();
  Commitments sums;
  Amounts capacity = Amounts::Of(kUnlimited);
  capacity[Resource::kQps] = one.capacity;
  sums.SetCapacity(capacity);
  for (const auto& tenant : one.tenants) {
    Quota quota;
    quota.committed[Resource::kQps] = tenant.committed;
    if (tenant.peak != 0) quota.peak[Resource::kQps] = tenant.peak;
    sums.SetTenant("tenants/" + tenant.id, quota);
  }
  for (size_t i = 0; i < one.pools.size(); ++i) {
    Amounts committed;
    committed[Resource::kQps] = one.pools[i].committed;
    sums.SetPool("tenants/" + one.pools[i].tenant + "/pools/p" + std::to_string(i), committed);
  }
  EXPECT_EQ(!sums.Check().has_value(), one.fits);
}

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
