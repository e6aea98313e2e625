// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_shares.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <random>

#include "controlplane/donors/donor_choice.h"
#include "controlplane/donors/share_keeper.h"
#include "controlplane/store/local/memory_store.h"
#include "controlplane/sync/presence.h"
#include "tests/unit/donors/donor_objects.h"

namespace rocegw::donors {
namespace {

using rocegw::testing::ConnectedGateway;
using rocegw::testing::DonorWith;
using rocegw::testing::Fleet;
using rocegw::testing::IntentOf;
using rocegw::testing::kGiB;
using types::v1::DonorState;

constexpr char kTenant[] = "tenants/red";
constexpr uint64_t kMiB = 1 << 20;

std::string NameOn(const std::string& gateway) { return "gateways/" + gateway + "/donors/d"; }

// Fleet with gateways that have a donor each, and a tenant with a limit.
class DonorSharesTest : public ::testing::Test {
 protected:
  void SetLimit(uint64_t bytes) {
    types::v1::Tenant tenant = rocegw::testing::TenantWith("red");
    tenant.mutable_spec()->set_donated_bytes(bytes);
    fleet_.Put(tenant);
  }
  void AddDonor(const std::string& gateway, uint64_t donated) {
    const auto host = ConnectedGateway(gateway, "10.0.0.1");
    fleet_.Put(host);
    fleet_.Put(host, model::Part::kStatus);
    const types::v1::Donor donor = DonorWith(gateway, "d", donated);
    fleet_.Put(donor);
    fleet_.Put(donor, model::Part::kStatus);
  }
  types::v1::Donor DonorOn(const std::string& gateway) const {
    return fleet_.view.donors.at(NameOn(gateway)).object;
  }
  void Report(const types::v1::Donor& donor) { fleet_.Put(donor, model::Part::kStatus); }
  void Lease(const std::string& gateway, uint64_t bytes) {
    types::v1::Donor donor = DonorOn(gateway);
    donor.mutable_status()->clear_tenants();
    donor.mutable_status()->set_leased_bytes(bytes);
    types::v1::DonorUse& use = *donor.mutable_status()->add_tenants();
    use.set_tenant("red");
    use.set_bytes(bytes);
    Report(donor);
  }
  // The donor reports that it follows the newest shares.
  void Follow(const std::string& gateway) {
    types::v1::Donor donor = DonorOn(gateway);
    donor.mutable_status()->set_followed_shares(fleet_.view.tenants.at(kTenant).status_revision);
    Report(donor);
  }
  bool Divide() {
    const auto status = NewShares(fleet_.view, fleet_.view.tenants.at(kTenant));
    if (!status.has_value()) return false;
    types::v1::Tenant tenant = rocegw::testing::TenantWith("red");
    *tenant.mutable_status() = *status;
    fleet_.Put(tenant, model::Part::kStatus);
    return true;
  }
  uint64_t ShareOn(const std::string& gateway) const {
    for (const auto& share : fleet_.view.tenants.at(kTenant).object.status().donor_shares())
      if (share.donor() == NameOn(gateway)) return share.bytes();
    return 0;
  }
  fleet::v1::DonorOrder OrderFor(const std::string& gateway) const {
    fleet::v1::DonorOrder order;
    AddQuotas(fleet_.view, DonorOn(gateway), order);
    return order;
  }

  Fleet fleet_;
};

TEST_F(DonorSharesTest, ALimitIsDividedByRoom) {
  AddDonor("a", 6 * kGiB);
  AddDonor("b", 2 * kGiB);
  SetLimit(4 * kGiB);
  ASSERT_TRUE(Divide());
  EXPECT_EQ(ShareOn("a"), 3 * kGiB);
  EXPECT_EQ(ShareOn("b"), kGiB);
  EXPECT_FALSE(Divide()) << "nothing has changed";
}

TEST_F(DonorSharesTest, WhatOneDonorMayStillLeaseIsNotGivenToAnother) {
  AddDonor("a", 4 * kGiB);
  AddDonor("b", 4 * kGiB);
  SetLimit(2 * kGiB);
  ASSERT_TRUE(Divide());
  ASSERT_EQ(ShareOn("a"), kGiB);
  // The tenant uses up a's share; half of b's should go to a.
  Lease("a", kGiB);
  ASSERT_TRUE(Divide());
  EXPECT_LT(ShareOn("b"), kGiB);
  EXPECT_EQ(ShareOn("a"), kGiB) << "b may lease a whole GiB until it follows";
  const uint64_t smaller = ShareOn("b");
  Follow("b");
  ASSERT_TRUE(Divide());
  EXPECT_GT(ShareOn("a"), 2 * kGiB - smaller - kMiB);
  EXPECT_LE(ShareOn("a"), 2 * kGiB - smaller);
}

TEST_F(DonorSharesTest, ASilentDonorKeepsItsShare) {
  AddDonor("a", 4 * kGiB);
  AddDonor("b", 4 * kGiB);
  SetLimit(2 * kGiB);
  ASSERT_TRUE(Divide());
  types::v1::Donor silent = DonorOn("b");
  silent.mutable_status()->set_health(DonorState::SILENT);
  Report(silent);
  (void)Divide();
  EXPECT_EQ(ShareOn("a"), kGiB);
  silent.mutable_status()->set_health(DonorState::ABSENT);
  Report(silent);
  ASSERT_TRUE(Divide());
  EXPECT_EQ(ShareOn("a"), 2 * kGiB);
}

TEST_F(DonorSharesTest, ADonorThatDrainsGetsNothingFurther) {
  AddDonor("a", 4 * kGiB);
  AddDonor("b", 4 * kGiB);
  SetLimit(2 * kGiB);
  ASSERT_TRUE(Divide());
  Lease("b", 512 * kMiB);
  types::v1::Donor draining = DonorOn("b");
  draining.mutable_spec()->set_admin_state(types::v1::DRAINING);
  fleet_.Put(draining);
  ASSERT_TRUE(Divide());
  EXPECT_EQ(ShareOn("b"), 512 * kMiB);
  Follow("b");
  ASSERT_TRUE(Divide());
  EXPECT_EQ(ShareOn("a"), 2 * kGiB - 512 * kMiB);
}

TEST_F(DonorSharesTest, ALowerLimitLowersShares_LeasesStay) {
  AddDonor("a", 4 * kGiB);
  AddDonor("b", 4 * kGiB);
  SetLimit(4 * kGiB);
  ASSERT_TRUE(Divide());
  Lease("a", kGiB);
  SetLimit(kMiB);
  ASSERT_TRUE(Divide());
  EXPECT_EQ(ShareOn("a"), kGiB) << "what is leased already";
  EXPECT_EQ(ShareOn("b"), 0u);
}

TEST_F(DonorSharesTest, WithoutALimitThereAreNoShares) {
  AddDonor("a", 4 * kGiB);
  SetLimit(kGiB);
  ASSERT_TRUE(Divide());
  EXPECT_EQ(OrderFor("a").quotas_size(), 1);
  fleet_.Put(rocegw::testing::TenantWith("red"));
  ASSERT_TRUE(Divide());
  EXPECT_EQ(OrderFor("a").quotas_size(), 0);
  EXPECT_EQ(OrderFor("a").shares_revision(), 0);
  EXPECT_TRUE(fleet_.view.tenants_with_shares.empty());
}

TEST_F(DonorSharesTest, OrdersHaveTheSmallerOfShareAndQuota) {
  AddDonor("a", 4 * kGiB);
  SetLimit(kGiB);
  EXPECT_EQ(OrderFor("a").quotas(0).bytes(), 0u) << "no share yet";
  ASSERT_TRUE(Divide());
  EXPECT_EQ(OrderFor("a").quotas(0).bytes(), kGiB);
  EXPECT_EQ(OrderFor("a").shares_revision(), fleet_.view.tenants.at(kTenant).status_revision);
  types::v1::Donor donor = DonorOn("a");
  donor.mutable_spec()->set_tenant_bytes(3);
  fleet_.Put(donor);
  EXPECT_EQ(OrderFor("a").quotas(0).bytes(), 3u) << "quota of tenants that are not named";
  types::v1::DonorQuota& quota = *donor.mutable_spec()->add_quotas();
  quota.set_tenant(kTenant);
  quota.set_bytes(5);
  fleet_.Put(donor);
  ASSERT_EQ(OrderFor("a").quotas_size(), 1);
  EXPECT_EQ(OrderFor("a").quotas(0).bytes(), 5u);
}

TEST_F(DonorSharesTest, ATenantThatAReportLeavesOutMayHaveAsMuchAsTheLeastThatItNames) {
  types::v1::Donor donor = DonorWith("a", "d", 8 * kGiB);
  for (uint64_t i = 0; i < 64; ++i) {
    types::v1::DonorUse& use = *donor.mutable_status()->add_tenants();
    use.set_tenant("t" + std::to_string(i));
    use.set_bytes((i + 5) * kMiB);
  }
  EXPECT_EQ(LeasedBy(donor, kTenant), 5 * kMiB);
  donor.mutable_status()->mutable_tenants()->RemoveLast();
  EXPECT_EQ(LeasedBy(donor, kTenant), 0u);
}

// Donors learn of their shares at any time, in any order, and lease what they may by what they have
// learnt. The sum of all leases must never exceed the limit.
TEST_F(DonorSharesTest, NoOrderOfEventsExceedsTheLimit) {
  constexpr uint64_t kLimit = 3 * kGiB;
  const std::vector<std::string> gateways = {"a", "b", "c", "e", "f"};
  const char* const given = std::getenv("ROCEGW_TEST_SEED");
  const uint32_t seed = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : 20261129;
  SCOPED_TRACE("ROCEGW_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  struct Real {
    uint64_t quota = 0;  // that the donor enforces
    int64_t follows = 0;
    uint64_t leased = 0;
  };
  std::map<std::string, Real> real;
  for (const std::string& gateway : gateways) AddDonor(gateway, 2 * kGiB);
  SetLimit(kLimit);
  uint64_t most = 0;
  for (int step = 0; step < 20000; ++step) {
    const std::string& gateway = gateways[random() % gateways.size()];
    Real& donor = real[gateway];
    switch (random() % 5) {
      case 0: {  // orders arrive
        const auto order = OrderFor(gateway);
        donor.quota = order.quotas(0).bytes();
        donor.follows = order.shares_revision();
        break;
      }
      case 1:  // a session leases
        if (donor.leased < donor.quota) donor.leased += 1 + random() % (donor.quota - donor.leased);
        break;
      case 2:
        donor.leased -= donor.leased == 0 ? 0 : random() % donor.leased;
        break;
      case 3: {  // a report arrives
        Lease(gateway, donor.leased);
        types::v1::Donor reported = DonorOn(gateway);
        reported.mutable_status()->set_followed_shares(donor.follows);
        Report(reported);
        break;
      }
      default:
        (void)Divide();
    }
    uint64_t sum = 0;
    for (const auto& [name, one] : real) sum += one.leased;
    ASSERT_LE(sum, kLimit) << "step " << step;
    most = std::max(most, sum);
  }
  EXPECT_GT(most, kLimit / 10 * 9) << "the limit is used";
}

TEST(ShareKeeperTest, StoresSharesOfTheFleetItSees) {
  const auto store = store::NewMemoryStore();
  sync::Presence presence(*store, "self", {});
  ASSERT_TRUE(presence.AwaitSaid(std::chrono::seconds(20)));
  const auto follower = std::move(*sync::FleetFollower::Start(*store));
  const ShareKeeper keeper(*store, *follower, "self", std::chrono::milliseconds(1));
  types::v1::Tenant tenant = rocegw::testing::TenantWith("red");
  tenant.mutable_spec()->set_donated_bytes(kGiB);
  const types::v1::Gateway gateway = ConnectedGateway("a", "10.0.0.1");
  const types::v1::Donor donor = DonorWith("a", "d", 4 * kGiB);
  store::Transaction write;
  const auto put = [&write](auto object) {
    auto status =
        store::Operation::Put(model::KeyOf(model::Part::kStatus, model::NameOf(object.name())),
                              object.SerializeAsString());
    object.clear_status();
    write.then.push_back(IntentOf(object));
    write.then.push_back(std::move(status));
  };
  put(gateway);
  put(donor);
  write.then.push_back(IntentOf(tenant));
  ASSERT_TRUE(store->Txn(std::move(write)).ok());
  const auto share = [&] {
    return follower->Read([](const sync::Fleet& fleet) {
      const auto known = fleet.view.tenants.find(kTenant);
      const bool has = known != fleet.view.tenants.end() &&
                       known->second.object.status().donor_shares_size() == 1;
      return has ? known->second.object.status().donor_shares(0).bytes() : 0;
    });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (share() == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(share(), kGiB);
}

}  // namespace
}  // namespace rocegw::donors
