// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/address_claims.h"

#include <gtest/gtest.h>

#include "tests/support/fleet_fixture.h"

namespace rocegw::controllers {
namespace {

using testing::GatewayWith;
using Refusals = std::vector<RefusedAddress>;
using Texts = std::vector<std::string>;

class AddressClaimsTest : public ::testing::Test {
 protected:
  AddressClaimsTest() {
    // The object with the later name is older.
    MakeGateway("a", 20);
    MakeGateway("b", 10);
  }
  void MakeGateway(const std::string& id, int64_t created) {
    types::v1::Gateway gateway = GatewayWith(id);
    gateway.mutable_meta()->mutable_create_time()->set_seconds(created);
    fleet_.Put(gateway);
  }
  void Has(const std::string& id, const Texts& addresses) {
    types::v1::Gateway seen = GatewayWith(id);
    for (const std::string& address : addresses) seen.mutable_status()->add_addresses(address);
    fleet_.Put(seen, model::Part::kStatus);
  }
  AddressClaims Judge(const std::string& id, const Texts& named) {
    return JudgeAddresses(fleet_.view, "gateways/" + id, {named.begin(), named.end()});
  }

  testing::Fleet fleet_;
};

TEST_F(AddressClaimsTest, AddressesOfAHost_AreGrantedInOneSpelling) {
  const AddressClaims claims =
      Judge("a", {"192.0.2.1", "2001:DB8:0::1", "::ffff:192.0.2.1", "192.0.2.2"});
  EXPECT_EQ(claims.granted, (Texts{"192.0.2.1", "2001:db8::1", "192.0.2.2"}));
  EXPECT_EQ(claims.refused, Refusals());
}

TEST_F(AddressClaimsTest, WhatNoHostCanHave_IsRefused) {
  for (const char* text : {"nowhere", "", "192.0.2", "0.0.0.0", "::", "224.0.0.1", "ff02::1",
                           "255.255.255.255", "192.0.2.1/24", " 192.0.2.1", "::ffff:0.0.0.0"}) {
    const AddressClaims claims = Judge("a", {text, "192.0.2.9"});
    EXPECT_EQ(claims.granted, Texts{"192.0.2.9"}) << text;
    EXPECT_EQ(claims.refused, (Refusals{{text, AddressRefusal::kMalformed, ""}}));
  }
}

TEST_F(AddressClaimsTest, WhatAnotherOneHas_IsHisHoweverItIsWritten) {
  Has("b", {"192.0.2.1", "2001:db8::1"});
  AddressClaims claims = Judge("a", {"192.0.2.7", "::ffff:192.0.2.1", "2001:0db8::1"});
  EXPECT_EQ(claims.granted, Texts{"192.0.2.7"});
  EXPECT_EQ(claims.refused, (Refusals{{"192.0.2.1", AddressRefusal::kTaken, "gateways/b"},
                                      {"2001:db8::1", AddressRefusal::kTaken, "gateways/b"}}));
  EXPECT_NE(ToText(claims.refused[0]).find("192.0.2.1 is an address of gateways/b"),
            std::string::npos);
  EXPECT_EQ(Judge("b", {"192.0.2.1"}).granted, Texts{"192.0.2.1"}) << "its own stays its own";
}

TEST_F(AddressClaimsTest, WhatItsOwnerGivesUp_IsFree) {
  Has("b", {"192.0.2.1"});
  Has("b", {"192.0.2.2"});
  EXPECT_EQ(Judge("a", {"192.0.2.1"}).granted, Texts{"192.0.2.1"});
  EXPECT_EQ(Judge("a", {"192.0.2.2"}).granted, Texts());
  fleet_.Delete("gateways/b");
  EXPECT_EQ(Judge("a", {"192.0.2.2"}).granted, Texts{"192.0.2.2"});
}

TEST_F(AddressClaimsTest, BothHaveItAtOnce_TheOlderGatewayKeepsIt) {
  Has("a", {"192.0.2.1"});
  Has("b", {"192.0.2.1"});
  EXPECT_EQ(Judge("a", {"192.0.2.1"}).granted, Texts());
  EXPECT_EQ(Judge("b", {"192.0.2.1"}).granted, Texts{"192.0.2.1"});
}

TEST_F(AddressClaimsTest, TooMany_AreCutOff) {
  Texts named;
  for (int i = 0; i < 1000; ++i)
    named.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1));
  const AddressClaims claims = Judge("a", named);
  EXPECT_EQ(claims.granted.size(), kMostAddresses);
  EXPECT_EQ(claims.refused, (Refusals{{"10.0.0.65", AddressRefusal::kTooMany, ""}}));
  const AddressClaims nonsense = Judge("a", Texts(100000, "\xc3\xa4nowhere at all"));
  EXPECT_EQ(nonsense.refused.size(), kMostAddresses);
}

TEST_F(AddressClaimsTest, LongText_IsCutBetweenCharacters) {
  const AddressClaims claims = Judge("a", {std::string(63, 'x') + "\xc3\xa4"});
  ASSERT_EQ(claims.refused.size(), 1u);
  EXPECT_EQ(claims.refused[0].address, std::string(63, 'x'));
}

// The address appears in logs and terminals.
TEST_F(AddressClaimsTest, ControlCharacters_AreNotRepeated) {
  const AddressClaims claims = Judge("a", {"\x1b[2Jgone\n\xc3\xa4"});
  ASSERT_EQ(claims.refused.size(), 1u);
  EXPECT_EQ(claims.refused[0].address, "?[2Jgone?\xc3\xa4");
}

}  // namespace
}  // namespace rocegw::controllers
