// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_choice.h"

#include <gtest/gtest.h>

#include "controlplane/donors/donor_metrics.h"
#include "tests/unit/donors/donor_objects.h"

namespace rocegw::donors {
namespace {

using rocegw::testing::ConnectedGateway;
using rocegw::testing::DonorWith;
using rocegw::testing::Fleet;
using rocegw::testing::kGiB;

class DonorChoiceTest : public ::testing::Test {
 protected:
  void AddGateway(const types::v1::Gateway& gateway) {
    fleet_.Put(gateway);
    fleet_.Put(gateway, model::Part::kStatus);
  }
  void AddDonor(const types::v1::Donor& donor) {
    fleet_.Put(donor);
    fleet_.Put(donor, model::Part::kStatus);
  }
  // Gateways a, b, c with a donor each.
  void AddThree(const std::string& zone_of_b = {}) {
    AddGateway(ConnectedGateway("a", "10.0.0.1", zone_of_b));
    AddGateway(ConnectedGateway("b", "10.0.0.2", zone_of_b));
    AddGateway(ConnectedGateway("c", "10.0.0.3"));
    AddDonor(DonorWith("a", "d", 8 * kGiB));
    AddDonor(DonorWith("b", "d", 4 * kGiB));
    AddDonor(DonorWith("c", "d", 2 * kGiB));
  }
  std::vector<std::string> Find(const WantedRoom& wanted) {
    FoundRoom found = FindRoom(fleet_.view, wanted);
    problem_ = found.problem;
    std::vector<std::string> names;
    for (const auto& donor : found.donors) names.push_back(model::NameOf(donor.name()).parent);
    return names;
  }

  Fleet fleet_;
  std::string problem_;
};

using Names = std::vector<std::string>;

TEST_F(DonorChoiceTest, TheMostRoomComesFirst) {
  AddThree();
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 8 * kGiB}), (Names{"a", "b", "c"}));
  const FoundRoom found = FindRoom(fleet_.view, {.tenant = "tenants/default", .bytes = 8 * kGiB});
  EXPECT_EQ(found.donors[0].addresses(0), "10.0.0.1");
  EXPECT_EQ(found.donors[0].port(), 7475u);
  EXPECT_EQ(found.donors[0].free_bytes(), 8 * kGiB);
  EXPECT_EQ(found.donors[0].failure_domain(), "gateways/a");
}

TEST_F(DonorChoiceTest, ADonorThatClaimsMuchIsNotTheFirstChoiceOfEverybody) {
  for (int number = 0; number < 10; number++) {
    const std::string name = "g" + std::to_string(number);
    AddGateway(ConnectedGateway(name, "10.0.0." + std::to_string(number + 1)));
    AddDonor(DonorWith(name, "d", number == 0 ? uint64_t{1} << 50 : 8 * kGiB));
  }
  int first = 0;
  for (int asker = 0; asker < 100; asker++) {
    const std::string gateway = "gateways/asker" + std::to_string(asker);
    const Names found = Find({.tenant = "tenants/default", .bytes = kGiB, .not_of = gateway});
    ASSERT_FALSE(found.empty());
    first += found[0] == "g0" ? 1 : 0;
  }
  EXPECT_LT(first, 30) << "its share is 10";
}

TEST_F(DonorChoiceTest, AnotherDomainComesBeforeMoreRoom) {
  AddThree("z");
  const Names found = Find({.tenant = "tenants/default", .bytes = 2 * kGiB, .replicas = 2});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NE(found[2], "c") << "a and b are of one domain";
}

TEST_F(DonorChoiceTest, ReplicasNeedRoomInDifferentDomains) {
  AddThree("z");
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 2 * kGiB, .replicas = 2}).size(), 3u);
  // The domain z has 12 GiB; the other one only 2.
  EXPECT_TRUE(Find({.tenant = "tenants/default", .bytes = 3 * kGiB, .replicas = 2}).empty());
  EXPECT_NE(problem_.find("2 failure domains"), std::string::npos) << problem_;
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 12 * kGiB, .replicas = 1}).size(), 3u);
}

TEST_F(DonorChoiceTest, ADonorsOwnDomainHoldsOverItsGateways) {
  AddThree();
  types::v1::Donor donor = DonorWith("b", "d", 4 * kGiB);
  donor.mutable_spec()->set_failure_domain("gateways-a");
  AddDonor(donor);
  EXPECT_EQ(FailureDomainOf(fleet_.view, fleet_.view.donors.at(donor.name()).object), "gateways-a");
}

TEST_F(DonorChoiceTest, FewerAreNamedIfTheyHaveRoom_MoreOnlyIfNot) {
  AddThree();
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 5 * kGiB, .donors = 1}), (Names{"a"}));
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 9 * kGiB, .donors = 1}), (Names{"a", "b"}));
}

TEST_F(DonorChoiceTest, QuotasAreOfTenants) {
  AddThree();
  types::v1::Donor donor = DonorWith("a", "d", 8 * kGiB, 3 * kGiB);
  donor.mutable_spec()->set_tenant_bytes(0);
  types::v1::DonorQuota& quota = *donor.mutable_spec()->add_quotas();
  quota.set_tenant("tenants/red");
  quota.set_bytes(4 * kGiB);
  types::v1::DonorUse& use = *donor.mutable_status()->add_tenants();
  use.set_tenant("red");
  use.set_bytes(3 * kGiB);
  AddDonor(donor);
  EXPECT_EQ(FreeFor(donor, "tenants/red"), kGiB);
  EXPECT_EQ(FreeFor(donor, "tenants/blue"), 0u);
  // A tenant sees only donors that it may use.
  EXPECT_EQ(Find({.tenant = "tenants/blue", .bytes = 4 * kGiB}), (Names{"b", "c"}));
  EXPECT_EQ(Find({.tenant = "tenants/red", .bytes = 4 * kGiB}), (Names{"b", "c", "a"}));
}

// Returns a donor of the block pool "kv" whose table is open for the tenant.
types::v1::Donor PoolDonor(const std::string& gateway, uint64_t open, const std::string& tenant) {
  types::v1::Donor donor = DonorWith(gateway, "p", 8 * kGiB, open);
  donor.mutable_status()->set_pool("kv");
  if (open != 0) {
    types::v1::DonorUse& use = *donor.mutable_status()->add_tenants();
    use.set_tenant(tenant);
    use.set_bytes(open);
  }
  return donor;
}

TEST_F(DonorChoiceTest, ABlockPoolIsAllItsOpenDonors_InOneOrderForEachThatAsks) {
  AddThree();
  AddDonor(PoolDonor("a", 2 * kGiB, "default"));
  AddDonor(PoolDonor("b", 8 * kGiB, "default"));
  AddDonor(PoolDonor("c", 0, "default"));
  WantedRoom wanted{.tenant = "tenants/default", .bytes = kGiB, .replicas = 2, .pool = "kv"};
  EXPECT_EQ(Find(wanted), (Names{"a", "b"}));
  // Members place values by the list: a host's own donors are in it, and no number bounds it.
  wanted.not_of = "gateways/b";
  wanted.donors = 1;
  EXPECT_EQ(Find(wanted), (Names{"a", "b"}));
  const FoundRoom found = FindRoom(fleet_.view, wanted);
  EXPECT_EQ(found.donors[1].free_bytes(), 8 * kGiB);
  EXPECT_EQ(found.donors[1].addresses(0), "10.0.0.2");
  EXPECT_EQ(found.donors[1].port(), 7475u);
}

TEST_F(DonorChoiceTest, ABlockPoolIsOfOneTenant_AndServesInItsFailureDomains) {
  AddThree("zone-1");
  AddDonor(PoolDonor("a", 2 * kGiB, "red"));
  AddDonor(PoolDonor("b", 2 * kGiB, "red"));
  EXPECT_EQ(Find({.tenant = "tenants/red", .bytes = kGiB, .replicas = 1, .pool = "kv"}),
            (Names{"a", "b"}));
  EXPECT_TRUE(Find({.tenant = "tenants/blue", .bytes = 1, .pool = "kv"}).empty());
  EXPECT_EQ(problem_,
            "block pool kv of tenants/blue has 0 MiB in 0 failure domains; 1 MiB in 1 replica are "
            "wanted");
  EXPECT_TRUE(Find({.tenant = "tenants/red", .bytes = 1, .replicas = 2, .pool = "kv"}).empty());
  EXPECT_EQ(problem_,
            "block pool kv of tenants/red has 4096 MiB in 1 failure domains; 1 MiB in 2 replicas "
            "are wanted");
  types::v1::Donor draining = PoolDonor("b", 2 * kGiB, "red");
  draining.mutable_spec()->set_approved(false);
  AddDonor(draining);
  EXPECT_EQ(Find({.tenant = "tenants/red", .bytes = kGiB, .pool = "kv"}), (Names{"a"}));
}

TEST_F(DonorChoiceTest, DonorsOfBlockPoolsAreNoDonorsForSessions) {
  AddGateway(ConnectedGateway("a", "10.0.0.1"));
  AddDonor(PoolDonor("a", kGiB, "default"));
  EXPECT_TRUE(Find({.tenant = "tenants/default", .bytes = kGiB}).empty());
}

TEST_F(DonorChoiceTest, DonorsThatDoNotServeAreLeftOut) {
  AddThree();
  types::v1::Donor silent = DonorWith("a", "d", 8 * kGiB);
  silent.mutable_status()->set_health(types::v1::DonorState::SILENT);
  AddDonor(silent);
  types::v1::Donor draining = DonorWith("b", "d", 4 * kGiB);
  draining.mutable_spec()->set_admin_state(types::v1::DRAINING);
  AddDonor(draining);
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = kGiB}), (Names{"c"}));
  types::v1::Gateway away = ConnectedGateway("c", "10.0.0.3");
  away.mutable_status()->set_connected(false);
  AddGateway(away);
  EXPECT_TRUE(Find({.tenant = "tenants/default", .bytes = kGiB}).empty());
  const DonorSums sums = SumsOf(fleet_.view);
  EXPECT_EQ(sums.serving, 1u);
  EXPECT_EQ(sums.draining, 1u);
  EXPECT_EQ(sums.silent, 1u);
  EXPECT_EQ(sums.absent, 0u);
  EXPECT_EQ(sums.donated_bytes, 6 * kGiB);
}

TEST_F(DonorChoiceTest, DonorsWithoutApprovalAreLeftOut) {
  AddThree();
  types::v1::Donor donor = DonorWith("a", "d", 8 * kGiB);
  donor.mutable_spec()->set_approved(false);
  AddDonor(donor);
  EXPECT_TRUE(IsToDrain(fleet_.view, donor));
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 3 * kGiB}), (Names{"b", "c"}));
  const DonorSums sums = SumsOf(fleet_.view);
  EXPECT_EQ(sums.unapproved, 1u);
  EXPECT_EQ(sums.serving, 2u);
  EXPECT_EQ(sums.donated_bytes, 6 * kGiB);
}

TEST_F(DonorChoiceTest, AShareOfTheTenantsLimitBoundsWhatIsFree) {
  AddThree();
  types::v1::Tenant tenant = rocegw::testing::TenantWith("red");
  tenant.mutable_spec()->set_donated_bytes(2 * kGiB);
  for (const char* gateway : {"a", "b"}) {
    types::v1::DonorShare& share = *tenant.mutable_status()->add_donor_shares();
    share.set_donor("gateways/" + std::string(gateway) + "/donors/d");
    share.set_bytes(kGiB);
  }
  fleet_.Put(tenant);
  fleet_.Put(tenant, model::Part::kStatus);
  EXPECT_EQ(Find({.tenant = "tenants/red", .bytes = 2 * kGiB}).size(), 2u) << "c has no share";
  EXPECT_TRUE(Find({.tenant = "tenants/red", .bytes = 2 * kGiB + 1}).empty());
  EXPECT_NE(problem_.find("limit over all donors is 2048 MiB"), std::string::npos) << problem_;
  EXPECT_EQ(Find({.tenant = "tenants/blue", .bytes = 8 * kGiB}).size(), 3u);
}

TEST_F(DonorChoiceTest, AGatewayThatDrainsTakesItsDonorsAlong) {
  AddThree();
  types::v1::Gateway draining = ConnectedGateway("a", "10.0.0.1");
  draining.mutable_spec()->set_admin_state(types::v1::DRAINING);
  AddGateway(draining);
  EXPECT_TRUE(IsToDrain(fleet_.view, fleet_.view.donors.at("gateways/a/donors/d").object));
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 3 * kGiB}), (Names{"b", "c"}));
}

TEST_F(DonorChoiceTest, AHostGetsNoneOfItsOwnDonors) {
  AddThree();
  EXPECT_EQ(Find({.tenant = "tenants/default", .bytes = 3 * kGiB, .not_of = "gateways/a"}),
            (Names{"b", "c"}));
}

}  // namespace
}  // namespace rocegw::donors
