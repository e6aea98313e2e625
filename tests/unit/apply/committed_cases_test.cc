// SPDX-License-Identifier: Apache-2.0
// Cases on which controller and gateway must agree, in one push.
#include "tests/support/committed_cases.h"

#include <gtest/gtest.h>

#include "gateway/apply/settings_reader.h"
#include "gateway/tenant/commitments.h"

namespace rocegw::apply {
namespace {

using rocegw::testing::CommittedCase;
using tenant::Amounts;
using tenant::Resource;

class CommittedCasesInTheGateway : public ::testing::TestWithParam<CommittedCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, CommittedCasesInTheGateway,
                         ::testing::ValuesIn(rocegw::testing::CommittedCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(CommittedCasesInTheGateway, FitsOrNot) {
  const CommittedCase& one = GetParam();
  tenant::Commitments sums;
  Amounts capacity = Amounts::Of(tenant::kUnlimited);
  capacity[Resource::kQps] = one.capacity;
  sums.SetCapacity(capacity);
  for (const auto& each : one.tenants) {
    types::v1::TenantConfig config;
    config.set_name("tenants/" + each.id);
    config.mutable_quota()->mutable_committed()->set_qps(each.committed);
    if (each.peak != 0) config.mutable_quota()->mutable_peak()->set_qps(each.peak);
    sums.SetTenant(config.name(), ReadTenant(config).quota);
  }
  for (size_t i = 0; i < one.pools.size(); ++i) {
    types::v1::PoolConfig config;
    config.set_name("tenants/" + one.pools[i].tenant + "/pools/p" + std::to_string(i));
    config.mutable_spec()->mutable_quota()->mutable_committed()->set_qps(one.pools[i].committed);
    config.mutable_spec()->set_ready_qps(one.pools[i].ready);
    sums.SetPool(config.name(), ReadPool(config).quota.committed);
  }
  EXPECT_EQ(!sums.Check().has_value(), one.fits);
}

}  // namespace
}  // namespace rocegw::apply
