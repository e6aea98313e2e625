// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/static_config.h"

#include <gtest/gtest.h>

namespace rocegw::apply {
namespace {

TEST(StaticConfig, Entries_AreTheObjectsOfAPush) {
  const auto result = ReadStatic(
      {{"gateway", R"({"capacity":{"qps":"500"}})", 1},
       {"tenants", R"({"name":"tenants/red","quota":{"peak":{"qps":100}}})", 2},
       {"pools",
        R"({"name":"tenants/red/pools/a","spec":{"slots":"2","memory":{"remap":"ALLOW"}}})", 3},
       {"cc_policies", R"({"name":"ccPolicies/slow","window_bytes":"65536"})", 4}},
      "gateways/g");
  EXPECT_EQ(result.problems, std::vector<std::string>());
  ASSERT_EQ(result.objects.size(), 4u);
  EXPECT_EQ(result.objects[0].name(), "gateways/g");
  EXPECT_EQ(result.objects[0].gateway().capacity().qps(), 500u);
  EXPECT_EQ(result.objects[1].tenant().quota().peak().qps(), 100u);
  EXPECT_EQ(result.objects[2].pool().spec().slots(), 2u);
  EXPECT_EQ(result.objects[2].pool().spec().memory().remap(), types::v1::ALLOW);
  EXPECT_EQ(result.objects[3].cc_policy().window_bytes(), 65536u);
}

TEST(StaticConfig, Problems_NameLineAndField) {
  const auto result =
      ReadStatic({{"pools", R"({"name":"tenants/red/pools/a","spec":{"slotz":2}})", 7},
                  {"pools", R"({"name":"tenants/red/pools/a","spec":{"slots":5000}})", 9},
                  {"tenants", R"({"quota":{}})", 11},
                  {"tenants", R"({"name":"tenants/red"})", 13},
                  {"tenants", R"({"name":"tenants/red"})", 14},
                  {"things", "{}", 15}},
                 "gateways/g");
  ASSERT_EQ(result.problems.size(), 5u);
  EXPECT_NE(result.problems[0].find("7: static.pools: "), std::string::npos);
  EXPECT_NE(result.problems[0].find("slotz"), std::string::npos);
  EXPECT_EQ(result.problems[1],
            "9: static.pools: tenants/red/pools/a: pool.spec.slots must be at most 1024, is 5000");
  EXPECT_NE(result.problems[2].find("11: static.tenants: name"), std::string::npos);
  EXPECT_EQ(result.problems[3], "14: static.tenants: tenants/red is there twice");
  EXPECT_EQ(result.objects.size(), 1u);
}

}  // namespace
}  // namespace rocegw::apply
