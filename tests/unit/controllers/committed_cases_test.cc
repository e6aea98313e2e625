// SPDX-License-Identifier: Apache-2.0
// Cases on which controller and gateway must agree, written in each order that the API allows: a
// sum that fits is never refused, another one is refused at one of the writes.
#include "tests/support/committed_cases.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/capacity.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::committed {
namespace {

class CommittedCasesInTheController : public ::testing::TestWithParam<CommittedCase> {
 protected:
  using Written = std::vector<model::Violation>;

  void PutGateway() {
    types::v1::Gateway gateway = GatewayWith("g", "z");
    gateway.mutable_spec()->mutable_capacity()->set_qps(GetParam().capacity);
    Write(gateway, CheckGateway(fleet_.view, fleet_.placement, gateway));
  }
  void PutTenants(bool with_quota) {
    for (const auto& one : GetParam().tenants) {
      types::v1::Tenant tenant = TenantWith(one.id);
      auto& quota = *tenant.mutable_spec()->mutable_quota();
      if (with_quota && one.committed != 0) quota.mutable_committed()->set_qps(one.committed);
      if (with_quota && one.peak != 0) quota.mutable_peak()->set_qps(one.peak);
      Write(tenant, CheckTenant(fleet_.view, fleet_.placement, tenant));
    }
  }
  void PutPools() {
    for (size_t i = 0; i < GetParam().pools.size(); ++i) {
      const auto& one = GetParam().pools[i];
      auto pool = PoolWith(one.tenant, "p" + std::to_string(i), "z", one.committed);
      pool.mutable_spec()->set_ready_qps(one.ready);
      Write(pool, CheckPool(fleet_.view, fleet_.placement, pool));
    }
  }
  bool fits() const { return fits_; }

 private:
  template <typename Object>
  void Write(const Object& object, const Written& violations) {
    if (!violations.empty()) {
      fits_ = false;
    } else {
      fleet_.Put(object);
    }
  }

  Fleet fleet_;
  bool fits_ = true;
};
INSTANTIATE_TEST_SUITE_P(Cases, CommittedCasesInTheController,
                         ::testing::ValuesIn(CommittedCases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(CommittedCasesInTheController, PoolsLast_FitsOrNot) {
  PutGateway();
  PutTenants(true);
  PutPools();
  EXPECT_EQ(fits(), GetParam().fits);
}

TEST_P(CommittedCasesInTheController, TenantsQuotasLast_FitsOrNot) {
  PutGateway();
  PutTenants(false);
  PutPools();
  PutTenants(true);
  EXPECT_EQ(fits(), GetParam().fits);
}

TEST_P(CommittedCasesInTheController, GatewayLast_FitsOrNot) {
  PutTenants(true);
  PutPools();
  PutGateway();
  EXPECT_EQ(fits(), GetParam().fits);
}

}  // namespace
}  // namespace rocegw::testing::committed
