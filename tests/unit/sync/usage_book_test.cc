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

TEST(UsageBook, WhatIsKeptReady_IsSummedToo) {
  sync::UsageBook book;
  for (const char* gateway : {"gateways/g", "gateways/h"}) {
    auto pools = With({{"tenants/a/pools/p", 0}});
    pools[0].mutable_ready()->set_wanted(8);
    pools[0].mutable_ready()->set_ready(7);
    pools[0].mutable_ready()->set_hits(3);
    book.Set(gateway, pools);
  }
  const sync::Usage usage = book.OfPool("tenants/a/pools/p");
  EXPECT_EQ(usage.ready.wanted(), 16u);
  EXPECT_EQ(usage.ready.ready(), 14u);
  EXPECT_EQ(usage.ready.hits(), 6u);
  EXPECT_EQ(book.OfPool("tenants/a/pools/q").ready.wanted(), 0u);
}

}  // namespace
}  // namespace rocegw::testing::usage_book
