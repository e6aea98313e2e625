// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/donor_reports.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <thread>

#include "controlplane/model/joined.h"
#include "controlplane/store/local/memory_store.h"
#include "controlplane/sync/presence.h"
#include "tests/unit/donors/donor_objects.h"

namespace rocegw::donors {
namespace {

using rocegw::testing::ConnectedGateway;
using rocegw::testing::DonorWith;
using rocegw::testing::IntentOf;
using rocegw::testing::kGiB;
using types::v1::DonorState;

constexpr std::chrono::milliseconds kSilentAfter(500);

class DonorReportsTest : public ::testing::Test {
 protected:
  DonorReportsTest() {
    EXPECT_TRUE(presence_.AwaitSaid(std::chrono::seconds(20)));
    Put(ConnectedGateway("a", "10.0.0.1"), true);
    Put(ConnectedGateway("b", "10.0.0.2"), true);
  }

  template <typename Object>
  void Put(const Object& object, bool status) {
    store::Transaction write;
    Object intent = object;
    intent.clear_status();
    write.then = {IntentOf(intent)};
    if (status) {
      write.then.push_back(
          store::Operation::Put(model::KeyOf(model::Part::kStatus, model::NameOf(object.name())),
                                object.SerializeAsString()));
    }
    ASSERT_TRUE(store_->Txn(std::move(write)).ok());
    Settle();
  }
  // Waits until everything is stored and known.
  void Settle() {
    statuses_.Flush();
    const auto seen = std::make_shared<std::promise<void>>();
    auto future = seen->get_future();
    follower_->WhenNewest([seen](const auto&) { seen->set_value(); });
    future.wait();
  }
  DonorState Stored(const std::string& name) {
    return follower_->Read([&](const sync::Fleet& fleet) {
      const auto known = fleet.view.donors.find(name);
      return known == fleet.view.donors.end() ? DonorState() : known->second.object.status();
    });
  }
  void AwaitSilent(const std::string& name) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (Stored(name).health() != DonorState::SILENT && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }
  static fleet::v1::ReportDonorsRequest Report(const std::string& gateway,
                                               std::initializer_list<const char*> names) {
    fleet::v1::ReportDonorsRequest request;
    request.set_gateway("gateways/" + gateway);
    for (const char* name : names) {
      fleet::v1::DonorReport& donor = *request.add_donors();
      donor.set_name(name);
      donor.set_port(7475);
      donor.set_donated_bytes(8 * kGiB);
    }
    return request;
  }
  std::vector<std::string> Take(const fleet::v1::ReportDonorsRequest& request) {
    answer_.Clear();
    auto unknown = reports_.Take(request, answer_);
    Settle();
    return unknown;
  }

  const std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  sync::Presence presence_{*store_, "self", {}};
  const std::unique_ptr<sync::FleetFollower> follower_ =
      std::move(*sync::FleetFollower::Start(*store_));
  sync::StatusWriter statuses_{*store_, std::chrono::milliseconds(1)};
  DonorReports reports_{*follower_, statuses_, "self", kSilentAfter};
  fleet::v1::ReportDonorsResponse answer_;
};

TEST_F(DonorReportsTest, ANewDonorIsNamed_AKnownOneGetsItsSpec) {
  EXPECT_EQ(Take(Report("a", {"d"})), (std::vector<std::string>{"gateways/a/donors/d"}));
  EXPECT_EQ(answer_.donors(0).generation(), 0);
  types::v1::Donor donor = DonorWith("a", "d", 0);
  donor.mutable_meta()->set_generation(3);
  donor.mutable_spec()->set_admin_state(types::v1::DRAINING);
  donor.mutable_spec()->set_tenant_bytes(5);
  donor.mutable_spec()->add_quotas()->set_tenant("tenants/red");
  Put(donor, false);
  EXPECT_TRUE(Take(Report("a", {"d"})).empty());
  ASSERT_EQ(answer_.donors_size(), 1);
  EXPECT_EQ(answer_.donors(0).generation(), 3);
  EXPECT_TRUE(answer_.donors(0).draining());
  EXPECT_EQ(answer_.donors(0).tenant_bytes(), 5u);
  EXPECT_EQ(answer_.donors(0).quotas(0).tenant(), "tenants/red");
  const DonorState state = Stored("gateways/a/donors/d");
  EXPECT_EQ(state.health(), DonorState::SERVING);
  EXPECT_EQ(state.donated_bytes(), 8 * kGiB);
  EXPECT_EQ(state.controller(), "self");
  EXPECT_EQ(reports_.reports(), 2u);
}

TEST_F(DonorReportsTest, ADonorWithoutApprovalDrains) {
  types::v1::Donor donor = DonorWith("a", "d", 0);
  donor.mutable_meta()->set_generation(1);
  donor.mutable_spec()->set_approved(false);
  Put(donor, false);
  (void)Take(Report("a", {"d"}));
  EXPECT_TRUE(answer_.donors(0).draining());
}

TEST_F(DonorReportsTest, OrdersIncludeSharesOfLimits_ReportsSayWhichAreFollowed) {
  types::v1::Tenant tenant = rocegw::testing::TenantWith("red");
  tenant.mutable_spec()->set_donated_bytes(4 * kGiB);
  types::v1::DonorShare& share = *tenant.mutable_status()->add_donor_shares();
  share.set_donor("gateways/a/donors/d");
  share.set_bytes(kGiB);
  Put(tenant, true);
  types::v1::Donor donor = DonorWith("a", "d", 0);
  donor.mutable_meta()->set_generation(1);
  Put(donor, false);
  auto report = Report("a", {"d"});
  (void)Take(report);
  ASSERT_EQ(answer_.donors(0).quotas_size(), 1);
  EXPECT_EQ(answer_.donors(0).quotas(0).tenant(), "tenants/red");
  EXPECT_EQ(answer_.donors(0).quotas(0).bytes(), kGiB);
  const int64_t revision = answer_.donors(0).shares_revision();
  EXPECT_GT(revision, 0);
  report.mutable_donors(0)->set_followed_shares(revision);
  (void)Take(report);
  EXPECT_EQ(Stored("gateways/a/donors/d").followed_shares(), revision);
}

TEST_F(DonorReportsTest, AnAgentReportsOnlyDonorsOfItsHost) {
  Put(DonorWith("b", "d", 0), false);
  auto report = Report("a", {"d"});
  report.mutable_donors(0)->set_address("10.0.0.2");  // b's
  EXPECT_TRUE(Take(report).empty());
  EXPECT_NE(answer_.donors(0).refusal().find("10.0.0.2"), std::string::npos);
  EXPECT_EQ(reports_.refused(ReportRefusal::kForeignAddress), 1u);
  // The name is one below its own gateway: b's donor is another object.
  report.mutable_donors(0)->set_address("10.0.0.1");
  EXPECT_EQ(Take(report), (std::vector<std::string>{"gateways/a/donors/d"}));
  EXPECT_EQ(Stored("gateways/b/donors/d").health(), DonorState::HEALTH_UNSPECIFIED);
}

TEST_F(DonorReportsTest, AHostHasABoundedNumberOfDonors) {
  for (int i = 0; i < 15; ++i) Put(DonorWith("a", "d" + std::to_string(i), 0), false);
  EXPECT_EQ(Take(Report("a", {"x", "y"})), (std::vector<std::string>{"gateways/a/donors/x"}));
  EXPECT_FALSE(answer_.donors(1).refusal().empty());
  EXPECT_EQ(reports_.refused(ReportRefusal::kTooMany), 1u);
}

TEST_F(DonorReportsTest, ADonorThatIsNotReportedAnyMoreIsAbsent) {
  Put(DonorWith("a", "d", 0), false);
  Put(DonorWith("b", "d", 0), false);
  (void)Take(Report("a", {"d"}));
  (void)Take(Report("b", {"d"}));
  (void)Take(Report("a", {}));
  EXPECT_EQ(Stored("gateways/a/donors/d").health(), DonorState::ABSENT);
  EXPECT_EQ(Stored("gateways/b/donors/d").health(), DonorState::SERVING);
  (void)Take(Report("a", {"d"}));
  EXPECT_EQ(Stored("gateways/a/donors/d").health(), DonorState::SERVING);
}

TEST_F(DonorReportsTest, ADonorThatWasDrainedWhenItEndedStaysKnownAsDrained) {
  for (const char* id : {"drained", "used"}) Put(DonorWith("a", id, 0), false);
  auto report = Report("a", {"drained", "used"});
  for (auto& donor : *report.mutable_donors()) donor.set_draining(true);
  report.mutable_donors(1)->set_leases(1);
  (void)Take(report);
  (void)Take(Report("a", {}));
  EXPECT_EQ(Stored("gateways/a/donors/drained").health(), DonorState::ABSENT);
  EXPECT_TRUE(Stored("gateways/a/donors/drained").draining());
  EXPECT_EQ(Stored("gateways/a/donors/used").health(), DonorState::ABSENT);
  EXPECT_FALSE(Stored("gateways/a/donors/used").draining());
}

TEST_F(DonorReportsTest, DonorsOfEarlyReportsAreCounted) {
  reports_.RefuseAll(Report("a", {"d", "e"}));
  EXPECT_EQ(reports_.refused(ReportRefusal::kTooOften), 2u);
}

TEST_F(DonorReportsTest, ADonorWithoutReportsIsSilent) {
  Put(DonorWith("a", "d", 0), false);
  (void)Take(Report("a", {"d"}));
  AwaitSilent("gateways/a/donors/d");
  EXPECT_EQ(Stored("gateways/a/donors/d").health(), DonorState::SILENT);
  EXPECT_EQ(Stored("gateways/a/donors/d").donated_bytes(), 8 * kGiB) << "the rest stays";
  (void)Take(Report("a", {"d"}));
  EXPECT_EQ(Stored("gateways/a/donors/d").health(), DonorState::SERVING);
}

TEST_F(DonorReportsTest, DonorsOfAControllerThatIsGoneAreSilent_ThoseOfAnotherOneAreItsOwn) {
  sync::Presence other(*store_, "zzz", {});
  ASSERT_TRUE(other.AwaitSaid(std::chrono::seconds(20)));
  types::v1::Donor lost = DonorWith("a", "lost", kGiB);
  lost.mutable_status()->set_controller("gone");
  Put(lost, true);
  types::v1::Donor kept = DonorWith("a", "kept", kGiB);
  kept.mutable_status()->set_controller("zzz");
  Put(kept, true);
  AwaitSilent("gateways/a/donors/lost");
  EXPECT_EQ(Stored("gateways/a/donors/lost").health(), DonorState::SILENT);
  EXPECT_EQ(Stored("gateways/a/donors/kept").health(), DonorState::SERVING);
}

TEST(IsNotable, SmallChangesOfLeasesAreNot) {
  DonorState before;
  before.set_donated_bytes(64 * kGiB);
  before.set_leased_bytes(10 * kGiB);
  before.set_leases(10);
  before.set_sessions(1);
  DonorState after = before;
  after.set_leased_bytes(10 * kGiB + kGiB / 2);
  after.set_leases(11);
  after.set_sessions(2);
  after.mutable_report_time()->set_seconds(1);
  EXPECT_FALSE(IsNotable(before, after));
  after.set_leased_bytes(11 * kGiB);
  EXPECT_TRUE(IsNotable(before, after));
  after = before;
  after.set_leases(0);
  EXPECT_TRUE(IsNotable(before, after)) << "a drain ends";
  after = before;
  after.set_draining(true);
  EXPECT_TRUE(IsNotable(before, after));
  after = before;
  after.add_tenants()->set_tenant("red");
  EXPECT_FALSE(IsNotable(before, after));
  after.mutable_tenants(0)->set_bytes(1);
  EXPECT_TRUE(IsNotable(before, after));
}

}  // namespace
}  // namespace rocegw::donors
