// SPDX-License-Identifier: Apache-2.0
// The admin services over a real gRPC connection (a unix socket, whose callers are administrators)
// and a memory store.
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "controlplane/api/services/cc_policies_service.h"
#include "controlplane/api/services/pools_service.h"
#include "controlplane/api/services/role_bindings_service.h"
#include "controlplane/api/services/tenants_service.h"
#include "controlplane/store/local/memory_store.h"
#include "google/rpc/error_details.pb.h"
#include "tests/support/fleet_fixture.h"

namespace rocegw::testing::services {
namespace {

using admin::v1::Pools;
using admin::v1::Tenants;

constexpr char kUuid[] = "123e4567-e89b-12d3-a456-426614174000";

class ServicesTest : public ::testing::Test {
 protected:
  ServicesTest() {
    socket_ = "unix:" + ::testing::TempDir() + "rocegw-api-" + std::to_string(getpid()) + ".sock";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket_, grpc::experimental::LocalServerCredentials(UDS));
    for (grpc::Service* service : std::initializer_list<grpc::Service*>{
             &tenants_service_, &pools_service_, &policies_service_, &bindings_service_}) {
      builder.RegisterService(service);
    }
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(socket_, grpc::experimental::LocalCredentials(UDS));
    tenants_ = Tenants::NewStub(channel_);
    pools_ = Pools::NewStub(channel_);
    bindings_ = admin::v1::RoleBindings::NewStub(channel_);
  }
  ~ServicesTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return context;
  }
  static std::string ReasonOf(const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    if (!details.ParseFromString(status.error_details()) || details.details_size() == 0) return {};
    return details.details(0).UnpackTo(&info) ? info.reason() : std::string();
  }

  grpc::Status CreateTenant(const std::string& id, types::v1::Tenant* out = nullptr,
                            const std::string& request_id = {}) {
    admin::v1::CreateTenantRequest request;
    *request.mutable_tenant() = TenantWith(id);
    request.set_request_id(request_id);
    types::v1::Tenant response;
    const grpc::Status status =
        tenants_->CreateTenant(Context().get(), request, out == nullptr ? &response : out);
    return status;
  }
  grpc::Status CreatePool(const types::v1::Pool& pool, bool validate_only = false) {
    admin::v1::CreatePoolRequest request;
    *request.mutable_pool() = pool;
    request.set_validate_only(validate_only);
    types::v1::Pool response;
    return pools_->CreatePool(Context().get(), request, &response);
  }
  grpc::Status UpdateTenant(const types::v1::Tenant& tenant, const std::string& path,
                            types::v1::Tenant* out) {
    admin::v1::UpdateTenantRequest request;
    *request.mutable_tenant() = tenant;
    if (!path.empty()) request.mutable_update_mask()->add_paths(path);
    return tenants_->UpdateTenant(Context().get(), request, out);
  }
  grpc::Status GetTenant(const std::string& name, types::v1::Tenant* out) {
    admin::v1::GetTenantRequest request;
    request.set_name(name);
    return tenants_->GetTenant(Context().get(), request, out);
  }
  grpc::Status DeleteTenant(const std::string& name, const std::string& etag = {}) {
    admin::v1::DeleteTenantRequest request;
    request.set_name(name);
    request.set_etag(etag);
    admin::v1::DeleteTenantResponse response;
    return tenants_->DeleteTenant(Context().get(), request, &response);
  }
  // Adds a gateway, as agents do.
  void PutGateway(const types::v1::Gateway& gateway) {
    ASSERT_TRUE(store_->Txn({.compares = {}, .then = {IntentOf(gateway)}, .otherwise = {}}).ok());
  }
  size_t Count(const std::string& prefix) {
    return store_->Range({.range = store::KeyRange::Prefix(prefix)}).value().entries.size();
  }

  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
  std::unique_ptr<sync::FleetFollower> follower_ = std::move(*sync::FleetFollower::Start(*store_));
  api::Writer writer_{*store_, *follower_};
  api::Backend backend_{*store_, *follower_, writer_};
  api::TenantsService tenants_service_{backend_};
  sync::TunnelHub tunnels_;
  api::Replicas replicas_{*follower_, "self", nullptr};
  api::QuestionRouter router_{tunnels_, replicas_};
  api::PoolsService pools_service_{backend_, router_};
  api::CcPoliciesService policies_service_{backend_};
  api::RoleBindingsService bindings_service_{backend_};
  std::string socket_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Tenants::Stub> tenants_;
  std::unique_ptr<Pools::Stub> pools_;
  std::unique_ptr<admin::v1::RoleBindings::Stub> bindings_;
};

TEST_F(ServicesTest, Create_ReturnsWhatIsThenRead) {
  types::v1::Tenant created;
  ASSERT_TRUE(CreateTenant("acme", &created).ok());
  EXPECT_EQ(created.meta().uid().size(), 36u);
  EXPECT_EQ(created.meta().generation(), 1);
  EXPECT_NE(created.meta().etag(), "");
  types::v1::Tenant read;
  ASSERT_TRUE(GetTenant("tenants/acme", &read).ok());
  EXPECT_EQ(read.SerializeAsString(), created.SerializeAsString());
  EXPECT_EQ(Count("audit/"), 1u);
}

TEST_F(ServicesTest, CreateTwice_IsRefused_WithOneRequestIdAnsweredAgain) {
  types::v1::Tenant first;
  types::v1::Tenant again;
  ASSERT_TRUE(CreateTenant("acme", &first, kUuid).ok());
  ASSERT_TRUE(CreateTenant("acme", &again, kUuid).ok());
  EXPECT_EQ(again.SerializeAsString(), first.SerializeAsString());
  const grpc::Status other = CreateTenant("other", nullptr, kUuid);
  EXPECT_EQ(ReasonOf(other), "REQUEST_ID_REUSED");
  EXPECT_EQ(CreateTenant("acme").error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(Count("audit/"), 1u) << "one write was made";
}

TEST_F(ServicesTest, Update_TakesWhatTheMaskNamesAndChecksTheEtag) {
  types::v1::Tenant tenant;
  ASSERT_TRUE(CreateTenant("acme", &tenant).ok());
  const std::string first_etag = tenant.meta().etag();
  tenant.mutable_spec()->set_weight(7);
  tenant.mutable_spec()->set_display_name("Acme");
  types::v1::Tenant updated;
  ASSERT_TRUE(UpdateTenant(tenant, "spec.weight", &updated).ok());
  EXPECT_EQ(updated.spec().weight(), 7u);
  EXPECT_EQ(updated.spec().display_name(), "");
  EXPECT_EQ(updated.meta().generation(), 2);
  EXPECT_NE(updated.meta().etag(), first_etag);
  const grpc::Status stale = UpdateTenant(tenant, "spec.weight", &updated);
  EXPECT_EQ(stale.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ReasonOf(stale), "ETAG_MISMATCH");
  tenant.mutable_meta()->set_etag("r999999999");
  EXPECT_EQ(ReasonOf(UpdateTenant(tenant, "spec.weight", &updated)), "ETAG_MISMATCH")
      << "and nobody waits for it";
  tenant.mutable_meta()->clear_etag();
  EXPECT_TRUE(UpdateTenant(tenant, "spec.weight", &updated).ok());
  EXPECT_EQ(UpdateTenant(TenantWith("nobody"), {}, &updated).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

// Rules between fields are checked on the merged pool, not on the parts of an update.
TEST_F(ServicesTest, UpdateInPart_IsCheckedAsAWhole) {
  ASSERT_TRUE(CreateTenant("acme").ok());
  types::v1::Pool pool = PoolWith("acme", "gold", "z");
  pool.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(4);
  pool.mutable_spec()->mutable_attach()->set_identity(types::v1::REQUIRED);
  ASSERT_TRUE(CreatePool(pool).ok());
  const auto update = [&](const types::v1::Pool& wanted, const std::string& path,
                          bool allow_missing = false) {
    admin::v1::UpdatePoolRequest request;
    *request.mutable_pool() = wanted;
    request.mutable_update_mask()->add_paths(path);
    request.set_allow_missing(allow_missing);
    types::v1::Pool updated;
    return pools_->UpdatePool(Context().get(), request, &updated);
  };
  types::v1::Pool part;
  part.set_name(pool.name());
  part.mutable_spec()->mutable_attach()->add_service_accounts()->set_namespace_("training");
  EXPECT_TRUE(update(part, "spec.attach.service_accounts").ok()) << "its identity is REQUIRED";
  part.mutable_spec()->mutable_quota()->mutable_committed()->set_qps(5);
  const size_t audited = Count("audit/");
  const grpc::Status above = update(part, "spec.quota.committed.qps");
  EXPECT_EQ(above.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(above.error_message().find("pool.spec.quota.committed.qps"), std::string::npos)
      << above.error_message();
  auto& accounts = *part.mutable_spec()->mutable_attach()->mutable_service_accounts();
  accounts[0].set_namespace_("Not a label");
  const grpc::Status malformed = update(part, "spec.quota.committed.qps");
  EXPECT_EQ(malformed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(malformed.error_message().find("pool.spec.attach.service_accounts[0].namespace"),
            std::string::npos)
      << malformed.error_message();
  accounts[0].set_namespace_("training");
  part.set_name("tenants/acme/pools/new");
  const grpc::Status made = update(part, "spec.attach.service_accounts", true);
  EXPECT_EQ(made.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "all of it would be stored";
  EXPECT_NE(made.error_message().find("pool.spec.attach.service_accounts"), std::string::npos);
  EXPECT_EQ(Count("audit/"), audited);
  EXPECT_EQ(Count("intent/pools/"), 1u);
}

TEST_F(ServicesTest, BadRequests_NameTheFieldAndChangeNothing) {
  types::v1::Pool pool = PoolWith("acme", "gold", "z");
  pool.mutable_spec()->set_slots(5000);
  EXPECT_EQ(CreatePool(pool).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status orphan = CreatePool(PoolWith("acme", "gold", "z"));
  EXPECT_EQ(ReasonOf(orphan), "MISSING_REFERENCE");
  EXPECT_NE(orphan.error_message().find("tenants/acme"), std::string::npos);
  grpc::ClientContext no_deadline;
  types::v1::Tenant tenant;
  admin::v1::GetTenantRequest request;
  request.set_name("tenants/acme");
  EXPECT_EQ(ReasonOf(tenants_->GetTenant(&no_deadline, request, &tenant)), "DEADLINE_REQUIRED");
  EXPECT_EQ(Count("intent/") + Count("audit/"), 0u);
}

TEST_F(ServicesTest, ValidateOnly_SaysWhatWouldHappenAndDoesNothing) {
  ASSERT_TRUE(CreateTenant("acme").ok());
  EXPECT_TRUE(CreatePool(PoolWith("acme", "gold", "z"), true).ok());
  EXPECT_EQ(Count("intent/pools/"), 0u);
  types::v1::Gateway gateway = GatewayWith("g", "z");
  gateway.mutable_spec()->mutable_capacity()->set_qps(10);
  PutGateway(gateway);
  ASSERT_TRUE(CreateTenant("other").ok()) << "from here on the gateway is known";
  EXPECT_EQ(ReasonOf(CreatePool(PoolWith("acme", "gold", "z", 11), true)), "DOES_NOT_FIT");
}

TEST_F(ServicesTest, Delete_WaitsForWhatUsesIt) {
  types::v1::Tenant tenant;
  ASSERT_TRUE(CreateTenant("acme", &tenant).ok());
  ASSERT_TRUE(CreatePool(PoolWith("acme", "gold", "z")).ok());
  const grpc::Status held = DeleteTenant("tenants/acme");
  EXPECT_EQ(ReasonOf(held), "STILL_IN_USE");
  EXPECT_NE(held.error_message().find("tenants/acme/pools/gold"), std::string::npos);
  admin::v1::DeletePoolRequest request;
  request.set_name("tenants/acme/pools/gold");
  admin::v1::DeletePoolResponse response;
  ASSERT_TRUE(pools_->DeletePool(Context().get(), request, &response).ok());
  EXPECT_EQ(ReasonOf(DeleteTenant("tenants/acme", "r1000000")), "ETAG_MISMATCH");
  EXPECT_TRUE(DeleteTenant("tenants/acme", tenant.meta().etag()).ok());
  EXPECT_EQ(DeleteTenant("tenants/acme").error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ServicesTest, List_PagesAreOfOneRevision) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(CreateTenant("t" + std::to_string(i)).ok());
  admin::v1::ListTenantsRequest request;
  request.set_page_size(3);
  std::vector<std::string> names;
  int64_t revision = 0;
  do {
    admin::v1::ListTenantsResponse response;
    ASSERT_TRUE(tenants_->ListTenants(Context().get(), request, &response).ok());
    EXPECT_LE(response.tenants_size(), 3);
    for (const auto& tenant : response.tenants()) names.push_back(tenant.name());
    if (revision == 0) revision = response.revision();
    EXPECT_EQ(response.revision(), revision);
    request.set_page_token(response.next_page_token());
    ASSERT_TRUE(CreateTenant("x" + std::to_string(names.size())).ok())
        << "does not show up any more";
  } while (!request.page_token().empty());
  EXPECT_EQ(names.size(), 7u);
  request.set_page_token("bogus");
  admin::v1::ListTenantsResponse response;
  EXPECT_EQ(tenants_->ListTenants(Context().get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, List_SelectsByParentAndLabels) {
  ASSERT_TRUE(CreateTenant("a").ok());
  ASSERT_TRUE(CreateTenant("ab").ok());
  types::v1::Pool gold = PoolWith("a", "p", "z");
  (*gold.mutable_meta()->mutable_labels())["tier"] = "gold";
  ASSERT_TRUE(CreatePool(gold).ok());
  ASSERT_TRUE(CreatePool(PoolWith("ab", "p", "z")).ok());
  const auto list = [&](const std::string& parent, const std::string& selector) {
    admin::v1::ListPoolsRequest request;
    request.set_parent(parent);
    request.set_label_selector(selector);
    admin::v1::ListPoolsResponse response;
    EXPECT_TRUE(pools_->ListPools(Context().get(), request, &response).ok());
    return response.pools_size();
  };
  EXPECT_EQ(list("tenants/-", ""), 2);
  EXPECT_EQ(list("tenants/a", ""), 1);
  EXPECT_EQ(list("tenants/-", "tier=gold"), 1);
  EXPECT_EQ(list("tenants/ab", "tier=gold"), 0);
}

// Each fits alone; the guard lets only as many pass as fit together.
TEST_F(ServicesTest, CommitmentsAtTheSameTime_NeverExceedTheCapacity) {
  types::v1::Gateway gateway = GatewayWith("g", "z");
  gateway.mutable_spec()->mutable_capacity()->set_qps(50);
  PutGateway(gateway);
  ASSERT_TRUE(CreateTenant("acme").ok());
  std::atomic<int> created{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int n = 0; n < 2; ++n) {
        const std::string id = "p" + std::to_string(i) + "-" + std::to_string(n);
        const grpc::Status status = CreatePool(PoolWith("acme", id, "z", 10));
        if (status.ok()) ++created;
        if (ReasonOf(status) == "DOES_NOT_FIT") ++refused;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(created, 5);
  EXPECT_EQ(refused, 11);
  EXPECT_EQ(Count("intent/pools/"), 5u);
}

// Call of WatchPools.
class PoolWatch {
 public:
  PoolWatch(Pools::Stub& pools, int64_t start, const std::string& parent,
            const std::string& selector = {}) {
    admin::v1::WatchPoolsRequest request;
    request.set_start_revision(start);
    request.set_parent(parent);
    request.set_label_selector(selector);
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reader_ = pools.WatchPools(&context_, request);
  }
  ~PoolWatch() {
    if (reader_ == nullptr) return;
    context_.TryCancel();
    (void)reader_->Finish();
  }
  // Returns the next message as text: changed names, and "-" with deleted names.
  std::vector<std::string> Next() {
    admin::v1::WatchPoolsResponse response;
    std::vector<std::string> names;
    if (!reader_->Read(&response)) return {"end"};
    for (const auto& pool : response.changed()) names.push_back(pool.name());
    for (const auto& name : response.deleted()) names.push_back("-" + name);
    revision_ = response.revision();
    synced_ = response.synced();
    return names;
  }
  grpc::Status End() {
    admin::v1::WatchPoolsResponse response;
    while (reader_->Read(&response)) {
    }
    const auto reader = std::move(reader_);
    return reader->Finish();
  }
  int64_t revision() const { return revision_; }
  bool synced() const { return synced_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<admin::v1::WatchPoolsResponse>> reader_;
  int64_t revision_ = 0;
  bool synced_ = false;
};

using Texts = std::vector<std::string>;

TEST_F(ServicesTest, Watch_ShowsWhatIsThereThenEachChange) {
  ASSERT_TRUE(CreateTenant("a").ok());
  ASSERT_TRUE(CreateTenant("b").ok());
  ASSERT_TRUE(CreatePool(PoolWith("a", "p", "z")).ok());
  ASSERT_TRUE(CreatePool(PoolWith("b", "q", "z")).ok());
  PoolWatch all(*pools_, 0, "tenants/-");
  PoolWatch own(*pools_, 0, "tenants/a");
  EXPECT_EQ(all.Next().size(), 2u);
  EXPECT_TRUE(all.synced());
  EXPECT_EQ(own.Next(), Texts{"tenants/a/pools/p"});
  const int64_t seen = all.revision();
  ASSERT_TRUE(CreatePool(PoolWith("b", "r", "z")).ok());
  ASSERT_TRUE(CreatePool(PoolWith("a", "s", "z")).ok());
  EXPECT_EQ(all.Next(), Texts{"tenants/b/pools/r"});
  EXPECT_EQ(all.Next(), Texts{"tenants/a/pools/s"});
  EXPECT_EQ(own.Next(), Texts{"tenants/a/pools/s"});
  admin::v1::DeletePoolRequest request;
  request.set_name("tenants/b/pools/r");
  admin::v1::DeletePoolResponse response;
  ASSERT_TRUE(pools_->DeletePool(Context().get(), request, &response).ok());
  EXPECT_EQ(all.Next(), Texts{"-tenants/b/pools/r"});
  // A watch from the revision after the last one seen misses nothing.
  PoolWatch again(*pools_, seen + 1, "tenants/-");
  EXPECT_EQ(again.Next(), Texts{"-tenants/b/pools/r"}) << "as it is when it is sent";
  EXPECT_EQ(again.Next(), Texts{"tenants/a/pools/s"});
}

TEST_F(ServicesTest, Watch_ObjectThatMatchesNoMore_IsGone) {
  ASSERT_TRUE(CreateTenant("a").ok());
  types::v1::Pool gold = PoolWith("a", "p", "z");
  (*gold.mutable_meta()->mutable_labels())["tier"] = "gold";
  ASSERT_TRUE(CreatePool(gold).ok());
  PoolWatch watch(*pools_, 0, "tenants/-", "tier=gold");
  EXPECT_EQ(watch.Next(), Texts{"tenants/a/pools/p"});
  gold.mutable_meta()->clear_labels();
  admin::v1::UpdatePoolRequest request;
  *request.mutable_pool() = gold;
  types::v1::Pool response;
  ASSERT_TRUE(pools_->UpdatePool(Context().get(), request, &response).ok());
  EXPECT_EQ(watch.Next(), Texts{"-tenants/a/pools/p"});
}

TEST_F(ServicesTest, Watch_OfAPastThatIsNotRemembered_IsToldToListAgain) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(CreateTenant("t" + std::to_string(i)).ok());
  const auto late = std::move(*sync::FleetFollower::Start(*store_));
  late->Read([&](const sync::Fleet& fleet) {
    EXPECT_FALSE(late->NextAfter(1).has_value());
    EXPECT_EQ(late->NextAfter(fleet.view.revision)->revision, 0);
  });
  PoolWatch watch(*pools_, 0, "tenants/a b");
  EXPECT_EQ(watch.End().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, Watch_NobodyReads_OthersGoOn) {
  ASSERT_TRUE(CreateTenant("a").ok());
  PoolWatch idle(*pools_, 0, "tenants/-");
  PoolWatch busy(*pools_, 0, "tenants/-");
  // Both have begun.
  EXPECT_EQ(idle.Next(), Texts());
  EXPECT_EQ(busy.Next(), Texts());
  for (int i = 0; i < 300; ++i) {
    const std::string id = "p" + std::to_string(i);
    ASSERT_TRUE(CreatePool(PoolWith("a", id, "z")).ok());
    EXPECT_EQ(busy.Next(), Texts{"tenants/a/pools/" + id});
  }
  for (int i = 0; i < 300; ++i) EXPECT_EQ(idle.Next().size(), 1u);
}

TEST_F(ServicesTest, RolesThatCannotBeBound_AreRefused) {
  admin::v1::CreateRoleBindingRequest request;
  request.mutable_role_binding()->set_name("roleBindings/r");
  request.mutable_role_binding()->mutable_spec()->set_subject("spiffe://rocegw/user/a");
  request.mutable_role_binding()->mutable_spec()->set_role(types::v1::NODE);
  types::v1::RoleBinding response;
  EXPECT_EQ(bindings_->CreateRoleBinding(Context().get(), request, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  request.mutable_role_binding()->mutable_spec()->set_role(types::v1::ADMIN);
  EXPECT_TRUE(bindings_->CreateRoleBinding(Context().get(), request, &response).ok());
}

}  // namespace
}  // namespace rocegw::testing::services
