// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/usage_book.h"

#include <gtest/gtest.h>

#include <map>

namespace rocegw::testing::usage_book {
namespace {

sync::UsageBook::Pools With(const std::map<std::string, uint64_t>& qps) {
  sync::UsageBook::Pools pools;
  for (const auto& [pool, count] : qps) {
    auto& one = *pools.Add();
    one.set_pool(pool);
    one.mutable_totals()->set_qps(count);
  }
  return pools;
}

TEST(UsageBook, SumsOverGatewaysAndPools_OfWhatWasToldLast) {
  sync::UsageBook book;
  book.Set("gateways/g", With({{"tenants/a/pools/p", 3}, {"tenants/a/pools/q", 4}}));
  book.Set("gateways/h", With({{"tenants/a/pools/p", 10}, {"tenants/ab/pools/p", 100}}));
  EXPECT_EQ(book.OfPool("tenants/a/pools/p").totals.qps(), 13u);
  EXPECT_EQ(book.OfPool("tenants/a/pools/p").gateways, 2u);
  EXPECT_EQ(book.OfTenant("tenants/a").totals.qps(), 17u);
  EXPECT_EQ(book.OfTenant("tenants/a").gateways, 2u);
  book.Set("gateways/g", With({{"tenants/a/pools/q", 1}}));
  EXPECT_EQ(book.OfTenant("tenants/a").totals.qps(), 11u);
  book.Remove("gateways/h");
  EXPECT_EQ(book.OfPool("tenants/a/pools/p").gateways, 0u);
  EXPECT_EQ(book.OfTenant("tenants/a").totals.qps(), 1u);
}

}  // namespace
}  // namespace rocegw::testing::usage_book
