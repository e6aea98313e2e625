// SPDX-License-Identifier: Apache-2.0
// admin.v1.Donors over a real gRPC connection (a unix socket, whose callers are administrators) and
// a memory store.
#include "controlplane/donors/donors_service.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "controlplane/donors/host_donors_service.h"
#include "controlplane/store/local/memory_store.h"
#include "tests/unit/donors/donor_objects.h"

namespace rocegw::donors {
namespace {

using rocegw::testing::ConnectedGateway;
using rocegw::testing::DonorWith;
using rocegw::testing::IntentOf;
using rocegw::testing::kGiB;

class DonorsServiceTest : public ::testing::Test {
 protected:
  DonorsServiceTest() {
    const std::string socket =
        "unix:" + ::testing::TempDir() + "rocegw-donors-" + std::to_string(getpid()) + ".sock";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket, grpc::experimental::LocalServerCredentials(UDS));
    builder.RegisterService(&service_);
    builder.RegisterService(&host_service_);
    server_ = builder.BuildAndStart();
    auto channel = grpc::CreateChannel(socket, grpc::experimental::LocalCredentials(UDS));
    donors_ = admin::v1::Donors::NewStub(channel);
    host_donors_ = fleet::v1::DonorService::NewStub(channel);
    Write(ConnectedGateway("a", "10.0.0.1"));
    Write(rocegw::testing::TenantWith("red"));
  }
  ~DonorsServiceTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return context;
  }
  template <typename Object>
  void Write(const Object& object) {
    store::Transaction write;
    Object intent = object;
    intent.clear_status();
    write.then = {
        IntentOf(intent),
        store::Operation::Put(model::KeyOf(model::Part::kStatus, model::NameOf(object.name())),
                              object.SerializeAsString())};
    const auto written = store_->Txn(std::move(write));
    ASSERT_TRUE(written.ok());
    std::promise<void> seen;
    follower_->WhenReached(written.value().revision, [&seen] { seen.set_value(); });
    seen.get_future().wait();
  }
  // Waits until the follower knows what is stored; an answer does not wait for that.
  void AwaitNewest() {
    std::promise<void> seen;
    follower_->WhenNewest([&seen](const auto&) { seen.set_value(); });
    seen.get_future().wait();
  }
  grpc::Status Create(const types::v1::Donor& donor) {
    admin::v1::CreateDonorRequest request;
    *request.mutable_donor() = donor;
    types::v1::Donor response;
    return donors_->CreateDonor(Context().get(), request, &response);
  }
  grpc::Status Delete(const std::string& name) {
    admin::v1::DeleteDonorRequest request;
    request.set_name(name);
    admin::v1::DeleteDonorResponse response;
    return donors_->DeleteDonor(Context().get(), request, &response);
  }

  const std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  const std::unique_ptr<sync::FleetFollower> follower_ =
      std::move(*sync::FleetFollower::Start(*store_));
  api::Writer writer_{*store_, *follower_};
  const api::Backend backend_{*store_, *follower_, writer_};
  sync::StatusWriter statuses_{*store_};
  DonorReports reports_{*follower_, statuses_, "self"};
  SearchCounts searches_;
  DonorsService service_{backend_, searches_};
  HostDonorsService host_service_{backend_, reports_, searches_, {}};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<admin::v1::Donors::Stub> donors_;
  std::unique_ptr<fleet::v1::DonorService::Stub> host_donors_;
};

TEST_F(DonorsServiceTest, ADonorBelongsToAGateway) {
  EXPECT_EQ(Create(DonorWith("none", "d", 0)).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(Create(DonorWith("a", "d", 0)).ok());
  admin::v1::ListDonorsRequest request;
  admin::v1::ListDonorsResponse response;
  for (const char* parent : {"gateways/a", "gateways/-"}) {
    request.set_parent(parent);
    ASSERT_TRUE(donors_->ListDonors(Context().get(), request, &response).ok());
    ASSERT_EQ(response.donors_size(), 1) << parent;
    EXPECT_EQ(response.donors(0).name(), "gateways/a/donors/d");
    EXPECT_FALSE(response.donors(0).has_status()) << "only agents report";
  }
  request.set_parent("gateways/b");
  ASSERT_TRUE(donors_->ListDonors(Context().get(), request, &response).ok());
  EXPECT_EQ(response.donors_size(), 0);
  EXPECT_TRUE(Delete("gateways/a/donors/d").ok());
}

TEST_F(DonorsServiceTest, QuotasNameTenants_EachOnce) {
  types::v1::Donor donor = DonorWith("a", "d", 0);
  donor.mutable_spec()->add_quotas()->set_tenant("tenants/none");
  EXPECT_EQ(Create(donor).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  donor.mutable_spec()->mutable_quotas(0)->set_tenant("tenants/red");
  donor.mutable_spec()->add_quotas()->set_tenant("tenants/red");
  EXPECT_EQ(Create(donor).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  donor.mutable_spec()->mutable_quotas()->RemoveLast();
  EXPECT_TRUE(Create(donor).ok());
  AwaitNewest();
  const auto holders = follower_->Read([](const sync::Fleet& fleet) {
    return std::pair(api::HoldersOf(fleet, model::NameOf("tenants/red")).names,
                     api::HoldersOf(fleet, model::NameOf("gateways/a")).names);
  });
  EXPECT_EQ(holders.first, (std::vector<std::string>{"gateways/a/donors/d"}));
  EXPECT_EQ(holders.second, (std::vector<std::string>{"gateways/a/donors/d"}));
}

TEST_F(DonorsServiceTest, AHostHasABoundedNumberOfThem) {
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(Create(DonorWith("a", "d" + std::to_string(i), 0)).ok());
  EXPECT_EQ(Create(DonorWith("a", "one-more", 0)).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(DonorsServiceTest, DrainAndUndrainChangeTheSpecOnce) {
  ASSERT_TRUE(Create(DonorWith("a", "d", 0)).ok());
  admin::v1::DrainDonorRequest drain;
  drain.set_name("gateways/a/donors/d");
  types::v1::Donor donor;
  ASSERT_TRUE(donors_->DrainDonor(Context().get(), drain, &donor).ok());
  EXPECT_EQ(donor.spec().admin_state(), types::v1::DRAINING);
  EXPECT_EQ(donor.meta().generation(), 2);
  ASSERT_TRUE(donors_->DrainDonor(Context().get(), drain, &donor).ok());
  EXPECT_EQ(donor.meta().generation(), 2);
  admin::v1::UndrainDonorRequest undrain;
  undrain.set_name(drain.name());
  ASSERT_TRUE(donors_->UndrainDonor(Context().get(), undrain, &donor).ok());
  EXPECT_EQ(donor.spec().admin_state(), types::v1::ACTIVE);
  EXPECT_EQ(donor.meta().generation(), 3);
  drain.set_name("gateways/a/donors/none");
  EXPECT_EQ(donors_->DrainDonor(Context().get(), drain, &donor).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(DonorsServiceTest, ApprovalIsGivenAndTakenBack) {
  types::v1::Donor donor = DonorWith("a", "d", 0);
  donor.mutable_spec()->set_approved(false);
  ASSERT_TRUE(Create(donor).ok());
  admin::v1::ApproveDonorRequest approve;
  approve.set_name("gateways/a/donors/d");
  ASSERT_TRUE(donors_->ApproveDonor(Context().get(), approve, &donor).ok());
  EXPECT_TRUE(donor.spec().approved());
  EXPECT_EQ(donor.meta().generation(), 2);
  admin::v1::RevokeDonorRequest revoke;
  revoke.set_name(approve.name());
  ASSERT_TRUE(donors_->RevokeDonor(Context().get(), revoke, &donor).ok());
  EXPECT_FALSE(donor.spec().approved());
  EXPECT_EQ(donor.meta().generation(), 3);
  approve.set_name("gateways/a/donors/none");
  EXPECT_EQ(donors_->ApproveDonor(Context().get(), approve, &donor).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(DonorRights, OperatorsHandleDonorsButDoNotApproveThem) {
  for (const char* const permission :
       {"donors.get", "donors.list", "donors.create", "donors.update", "donors.delete",
        "donors.drain", "donors.find"}) {
    EXPECT_TRUE(model::RoleHas(types::v1::OPERATOR, permission)) << permission;
  }
  EXPECT_FALSE(model::RoleHas(types::v1::OPERATOR, "donors.approve"));
  EXPECT_TRUE(model::RoleHas(types::v1::ADMIN, "donors.approve"));
  // An update cannot approve either.
  model::Caller caller{.principal = "users/o", .grants = {{types::v1::OPERATOR, ""}}};
  types::v1::Donor before;
  types::v1::Donor after;
  after.mutable_spec()->set_approved(true);
  EXPECT_TRUE(api::CheckFieldRights(caller, before, after).has_value());
  after.mutable_spec()->set_approved(false);
  after.mutable_spec()->set_tenant_bytes(1);
  EXPECT_FALSE(api::CheckFieldRights(caller, before, after).has_value());
}

TEST_F(DonorsServiceTest, ABoundedNumberOfTenantsHasALimitOverAllDonors) {
  for (int i = 0; i < 256; ++i) {
    types::v1::Tenant tenant = rocegw::testing::TenantWith("t" + std::to_string(i));
    tenant.mutable_spec()->set_donated_bytes(1);
    Write(tenant);
  }
  types::v1::Tenant more = rocegw::testing::TenantWith("more");
  const auto violations = [&] {
    return follower_->Read(
        [&](const sync::Fleet& fleet) { return api::RelationsOf(fleet, more).violations.size(); });
  };
  EXPECT_EQ(violations(), 0u);
  more.mutable_spec()->set_donated_bytes(1);
  EXPECT_EQ(violations(), 1u);
  more.set_name("tenants/t0");
  EXPECT_EQ(violations(), 0u) << "it has a limit already";
}

TEST_F(DonorsServiceTest, FindsRoomOrSaysWhatIsThere) {
  Write(DonorWith("a", "d", 8 * kGiB, 2 * kGiB));
  admin::v1::FindDonorsRequest request;
  request.set_tenant("tenants/red");
  request.set_bytes(6 * kGiB);
  admin::v1::FindDonorsResponse response;
  ASSERT_TRUE(donors_->FindDonors(Context().get(), request, &response).ok());
  ASSERT_EQ(response.donors_size(), 1);
  EXPECT_EQ(response.donors(0).free_bytes(), 6 * kGiB);
  request.set_bytes(6 * kGiB + 1);
  const grpc::Status status = donors_->FindDonors(Context().get(), request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("6144 MiB"), std::string::npos) << status.error_message();
  EXPECT_EQ(searches_.found, 1u);
  EXPECT_EQ(searches_.no_room, 1u);
}

TEST_F(DonorsServiceTest, NobodySearchesAllTheTime) {
  admin::v1::FindDonorsRequest request;
  request.set_tenant("tenants/red");
  request.set_bytes(1);
  admin::v1::FindDonorsResponse response;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const auto status = donors_->FindDonors(Context().get(), request, &response);
    refused += status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(searches_.refused, static_cast<uint64_t>(refused));
}

TEST(CallPace, EachCallerHasItsOwnSecond) {
  CallPace pace(2);
  const CallPace::Clock::time_point now{};
  EXPECT_TRUE(pace.May("a", now));
  EXPECT_TRUE(pace.May("a", now));
  EXPECT_FALSE(pace.May("a", now));
  EXPECT_TRUE(pace.May("b", now));
  EXPECT_FALSE(pace.May("a", now + std::chrono::milliseconds(999)));
  EXPECT_TRUE(pace.May("a", now + std::chrono::milliseconds(1001)));
}

TEST_F(DonorsServiceTest, OnlyANodeReports) {
  fleet::v1::ReportDonorsRequest request;
  request.set_gateway("gateways/a");
  fleet::v1::ReportDonorsResponse response;
  EXPECT_EQ(host_donors_->ReportDonors(Context().get(), request, &response).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  fleet::v1::FindHostDonorsRequest search;
  search.set_gateway("gateways/a");
  search.set_tenant("tenants/red");
  search.set_bytes(1);
  fleet::v1::FindHostDonorsResponse found;
  EXPECT_EQ(host_donors_->FindHostDonors(Context().get(), search, &found).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

}  // namespace
}  // namespace rocegw::donors
