// SPDX-License-Identifier: Apache-2.0
// Every method of the services' descriptors, called over the wire as every role, with names of its
// own and of others. What is allowed gets past the gate (whatever it answers then), all else is
// refused there.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <map>

#include "controlplane/model/access.h"
#include "rocegw/admin/v1/pools.grpc.pb.h"
#include "rocegw/admin/v1/role_bindings.grpc.pb.h"
#include "rocegw/admin/v1/tenants.grpc.pb.h"
#include "tests/e2e/controller/controller_host.h"
#include "tests/support/api_methods.h"

namespace rocegw::testing {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using grpc::StatusCode;

// Nothing is done where that can be asked for.
std::unique_ptr<Message> HarmlessRequestFor(const MethodDescriptor& method,
                                            const std::string& name) {
  auto request = RequestFor(method, name);
  SetAt(*request, "validate_only", [](auto& message, const auto& field) {
    message.GetReflection()->SetBool(&message, &field, true);
  });
  return request;
}

// The first thing that comes back: OK for a message, else the status.
grpc::Status CallOnce(const std::shared_ptr<grpc::Channel>& channel, const MethodDescriptor& method,
                      const Message& request) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  // Calls that are admitted may take as long as they like.
  const auto context = ContextFor(std::chrono::seconds(3));
  auto call = stub.PrepareCall(context.get(),
                               "/" + method.service()->full_name() + "/" + method.name(), &queue);
  call->StartCall(nullptr);
  grpc::Status status;
  grpc::ByteBuffer answer;
  bool answered = false;
  if (next()) {
    const std::string bytes = request.SerializeAsString();
    const grpc::Slice slice(bytes);
    grpc::WriteOptions options;
    if (!method.client_streaming()) options.set_last_message();
    call->Write(grpc::ByteBuffer(&slice, 1), options, nullptr);
    (void)next();
    call->Read(&answer, nullptr);
    answered = next();
    if (answered) context->TryCancel();
  }
  call->Finish(&status, nullptr);
  (void)next();
  queue.Shutdown();
  while (next()) {
  }
  return answered ? grpc::Status::OK : status;
}

struct Somebody {
  std::string who;
  std::shared_ptr<grpc::Channel> channel;
  model::Caller caller;
};

class RolesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    host_.Start();
    host_.CreateTenant("a");
    host_.CreateTenant("b");
    const std::pair<const char*, types::v1::Role> roles[] = {
        {"viewer", types::v1::VIEWER},
        {"operator", types::v1::OPERATOR},
        {"approver", types::v1::MIGRATION_APPROVER},
        {"admin", types::v1::ADMIN}};
    for (const auto& [name, role] : roles) Add(name, role, {});
    Add("tenant-admin", types::v1::TENANT_ADMIN, "tenants/a");
    Add("tenant-viewer", types::v1::VIEWER, "tenants/a");
    everybody_.push_back({"a user without a role",
                          host_.TlsChannel(host_.MakeUser("nobody")),
                          {.principal = "spiffe://rocegw/user/nobody", .node = {}, .grants = {}}});
    everybody_.push_back(
        {"a node",
         host_.TlsChannel(host_.JoinNode("a")),
         {.principal = "spiffe://rocegw/node/a", .node = "gateways/a", .grants = {}}});
    everybody_.push_back({"nobody", host_.TlsChannel(host_.Nobody()), {}});
    everybody_.push_back(
        {"the socket",
         host_.AdminChannel(),
         {.principal = "local:admin", .node = {}, .grants = {{types::v1::ADMIN, {}}}}});
  }
  void Add(const std::string& name, types::v1::Role role, const std::string& tenant) {
    host_.Bind(name, role, tenant);
    everybody_.push_back(
        {name,
         host_.TlsChannel(host_.MakeUser(name)),
         {.principal = "spiffe://rocegw/user/" + name, .node = {}, .grants = {{role, tenant}}}});
  }

  ControllerHost host_;
  std::vector<Somebody> everybody_;
};

TEST_F(RolesTest, EveryMethod_AsEverybody_IsAllowedOrDeniedByItsRule) {
  std::map<std::string, int> allowed;
  std::map<std::string, int> denied;
  for (const MethodDescriptor* method : ApiMethods()) {
    const types::v1::AccessRule& rule = *model::RuleOf(*method);
    for (const Somebody& one : everybody_) {
      for (const char* name : {"tenants/a", "tenants/a/pools/p", "tenants/b", "tenants/b/pools/p",
                               "tenants/ab", "gateways/a", "gateways/b"}) {
        // Other names than those of its kind say nothing new.
        const bool of_gateway = std::string(name).starts_with("gateways/");
        if ((rule.scope() == types::v1::TENANT) == of_gateway) continue;
        const auto request = HarmlessRequestFor(*method, name);
        SCOPED_TRACE(method->full_name() + " as " + one.who + " of " + name);
        const model::Decision decision = model::Decide(one.caller, *method, *request);
        // The controller closes a connection on which many calls come without a certificate.
        const auto channel =
            one.caller.principal.empty() ? host_.TlsChannel(host_.Nobody()) : one.channel;
        const grpc::Status status = CallOnce(channel, *method, *request);
        EXPECT_NE(status.error_code(), StatusCode::UNIMPLEMENTED);
        const bool refused =
            status.error_code() == StatusCode::PERMISSION_DENIED ||
            (status.error_code() == StatusCode::UNAUTHENTICATED && rule.scope() != types::v1::OPEN);
        EXPECT_EQ(refused, !decision.allowed) << status.error_code() << status.error_message();
        if (!decision.allowed) {
          EXPECT_EQ(status.error_code(), one.caller.principal.empty()
                                             ? StatusCode::UNAUTHENTICATED
                                             : StatusCode::PERMISSION_DENIED);
        }
        ++(decision.allowed ? allowed : denied)[one.who];
      }
    }
  }
  // The test has seen both, as far as there are both.
  for (const Somebody& one : everybody_) {
    EXPECT_GT(allowed[one.who], 0) << one.who << ": joining is open to all";
    EXPECT_GT(denied[one.who], 0) << one.who;
  }
}

// A list of all tenants shows a tenant's administrator nothing of others, and what is not his is
// not even told to be missing.
TEST_F(RolesTest, ForeignNames_AreNotToldFromMissingOnes) {
  const auto& method = *admin::v1::GetPoolRequest::descriptor()->file()->service(0)->method(0);
  ASSERT_EQ(method.name(), "GetPool");
  for (const Somebody& one : everybody_) {
    if (one.who != "tenant-admin") continue;
    const auto there =
        CallOnce(one.channel, method, *HarmlessRequestFor(method, "tenants/b/pools/p"));
    const auto missing =
        CallOnce(one.channel, method, *HarmlessRequestFor(method, "tenants/none/pools/p"));
    EXPECT_EQ(there.error_code(), StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(missing.error_code(), StatusCode::PERMISSION_DENIED);
    const auto own =
        CallOnce(one.channel, method, *HarmlessRequestFor(method, "tenants/a/pools/p"));
    EXPECT_EQ(own.error_code(), StatusCode::NOT_FOUND);
  }
}

// What a pool's programs can do to others on a host is not for its tenant's administrator to say.
TEST_F(RolesTest, FieldsThatConcernOthers_AreNotTheTenantsAdministrators) {
  const auto pools_of = [&](const std::string& who) {
    for (const Somebody& one : everybody_)
      if (one.who == who) return admin::v1::Pools::NewStub(one.channel);
    std::abort();
  };
  const auto create = [&](const std::string& who, const std::string& id,
                          const auto& change) -> grpc::Status {
    admin::v1::CreatePoolRequest request;
    request.mutable_pool()->set_name("tenants/a/pools/" + id);
    request.mutable_pool()->mutable_spec()->set_slots(1);
    change(*request.mutable_pool()->mutable_spec());
    types::v1::Pool pool;
    return pools_of(who)->CreatePool(ContextFor().get(), request, &pool);
  };
  const auto trust = [](types::v1::PoolSpec& spec) { spec.mutable_memory()->set_trusted(true); };
  const auto assign = [](types::v1::PoolSpec& spec) { spec.add_addresses("192.0.2.1"); };
  const auto nothing = [](types::v1::PoolSpec&) {};
  const grpc::Status refused = create("tenant-admin", "p", trust);
  EXPECT_EQ(refused.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_NE(refused.error_message().find("pool.spec.memory.trusted"), std::string::npos)
      << refused.error_message();
  EXPECT_NE(refused.error_message().find("pools.trust"), std::string::npos);
  EXPECT_EQ(create("tenant-admin", "p", assign).error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(create("tenant-admin", "p", nothing).ok());
  EXPECT_TRUE(create("operator", "q", trust).ok());
  EXPECT_TRUE(create("operator", "r", assign).ok());
  // Neither by an update, in either direction; what he leaves alone is no change.
  const auto update = [&](const std::string& id, const char* path, const auto& change) {
    admin::v1::UpdatePoolRequest request;
    request.mutable_pool()->set_name("tenants/a/pools/" + id);
    request.mutable_update_mask()->add_paths(path);
    change(*request.mutable_pool()->mutable_spec());
    types::v1::Pool pool;
    return pools_of("tenant-admin")->UpdatePool(ContextFor().get(), request, &pool).error_code();
  };
  EXPECT_EQ(update("p", "spec.memory", trust), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(update("q", "spec.memory", nothing), StatusCode::PERMISSION_DENIED);
  const auto slots = [](types::v1::PoolSpec& spec) { spec.set_slots(2); };
  EXPECT_EQ(update("q", "spec.slots", slots), StatusCode::OK);
}

TEST_F(RolesTest, WatchOfAUser_EndsWithItsRole) {
  const auto channel = host_.TlsChannel(host_.MakeUser("viewer"));
  const auto stub = admin::v1::Tenants::NewStub(channel);
  const auto context = ContextFor(std::chrono::seconds(60));
  const auto watch = stub->WatchTenants(context.get(), {});
  admin::v1::WatchTenantsResponse seen;
  ASSERT_TRUE(watch->Read(&seen)) << watch->Finish().error_message();
  // Of others: no reason to end.
  host_.Bind("somebody", types::v1::VIEWER);
  host_.CreateTenant("c");
  ASSERT_TRUE(watch->Read(&seen));
  ASSERT_EQ(seen.changed_size(), 1);
  EXPECT_EQ(seen.changed(0).name(), "tenants/c");
  admin::v1::DeleteRoleBindingRequest request;
  request.set_name("roleBindings/viewer");
  admin::v1::DeleteRoleBindingResponse response;
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(admin::v1::RoleBindings::NewStub(host_.AdminChannel())
                  ->DeleteRoleBinding(ContextFor().get(), request, &response)
                  .ok());
  EXPECT_FALSE(watch->Read(&seen));
  const grpc::Status status = watch->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonOf(status), "RIGHTS_CHANGED");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// A request_id belongs to its principal: another one who uses it gets its own answer.
TEST(Roles, SameRequestIdOfTwoPrincipals_IsTwoRequests) {
  ControllerHost host;
  host.Start();
  admin::v1::CreateTenantRequest request;
  request.mutable_tenant()->set_name("tenants/acme");
  request.set_request_id("123e4567-e89b-12d3-a456-426614174000");
  types::v1::Tenant response;
  const auto create = [&](const std::string& user) {
    host.Bind(user, types::v1::ADMIN);
    return admin::v1::Tenants::NewStub(host.TlsChannel(host.MakeUser(user)))
        ->CreateTenant(ContextFor().get(), request, &response);
  };
  EXPECT_TRUE(create("alice").ok());
  EXPECT_EQ(create("bob").error_code(), StatusCode::ALREADY_EXISTS);
  request.mutable_tenant()->set_name("tenants/other");
  EXPECT_TRUE(create("carol").ok()) << "nobody takes an id away from another";
}

}  // namespace
}  // namespace rocegw::testing
