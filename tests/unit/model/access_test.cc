// SPDX-License-Identifier: Apache-2.0
// Every method of the fleet's services, for every role.
#include "controlplane/model/access.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/api_methods.h"

namespace rocegw::model {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using rocegw::testing::ApiMethods;
using rocegw::testing::RequestFor;
using types::v1::Role;

Caller WithRole(Role role, const std::string& tenant = {}) {
  return {.principal = "spiffe://rocegw/user/a", .node = {}, .grants = {{role, tenant}}};
}

constexpr Role kBindable[] = {types::v1::VIEWER, types::v1::OPERATOR, types::v1::TENANT_ADMIN,
                              types::v1::MIGRATION_APPROVER, types::v1::ADMIN};

TEST(Access, EveryMethod_HasARuleThatCanBeMet) {
  const auto methods = ApiMethods();
  ASSERT_GT(methods.size(), 45u);
  for (const MethodDescriptor* method : methods) {
    SCOPED_TRACE(method->full_name());
    const types::v1::AccessRule* rule = RuleOf(*method);
    ASSERT_NE(rule, nullptr);
    EXPECT_NE(rule->permission(), "");
    EXPECT_NE(rule->scope(), types::v1::SCOPE_UNSPECIFIED);
    const bool tied = rule->scope() == types::v1::TENANT || rule->scope() == types::v1::GATEWAY;
    if (tied) {
      EXPECT_NE(rule->resource_field(), "");
    }
    const Role role = rule->scope() == types::v1::GATEWAY ? types::v1::NODE : types::v1::ADMIN;
    const bool by_role = rule->scope() != types::v1::OPEN && rule->scope() != types::v1::CONTROLLER;
    if (by_role) {
      EXPECT_TRUE(RoleHas(role, rule->permission()));
    }
  }
}

TEST(Access, NobodyAndNodes_AreDeniedEverythingThatIsNotOpenToThem) {
  const Caller node = {.principal = "spiffe://rocegw/node/g", .node = "gateways/g", .grants = {}};
  for (const MethodDescriptor* method : ApiMethods()) {
    SCOPED_TRACE(method->full_name());
    const types::v1::Scope scope = RuleOf(*method)->scope();
    const auto own = RequestFor(*method, "gateways/g");
    EXPECT_EQ(Decide({}, *method, *own).allowed, scope == types::v1::OPEN);
    EXPECT_EQ(Decide(node, *method, *own).allowed,
              scope == types::v1::OPEN || scope == types::v1::GATEWAY);
    if (scope != types::v1::GATEWAY) continue;
    EXPECT_FALSE(Decide(node, *method, *RequestFor(*method, "gateways/h")).allowed);
    EXPECT_FALSE(Decide(node, *method, *RequestFor(*method, "")).allowed);
  }
}

TEST(Access, Controllers_MayCallEachOtherAndNothingElse) {
  const Caller controller = {
      .principal = "spiffe://rocegw/controller", .node = {}, .controller = true, .grants = {}};
  for (const MethodDescriptor* method : ApiMethods()) {
    SCOPED_TRACE(method->full_name());
    const types::v1::Scope scope = RuleOf(*method)->scope();
    EXPECT_EQ(Decide(controller, *method, *RequestFor(*method, "gateways/g")).allowed,
              scope == types::v1::OPEN || scope == types::v1::CONTROLLER);
  }
}

TEST(Access, WavesOfMigrations_AreApprovedByApproversAndAdministratorsOnly) {
  EXPECT_TRUE(RoleHas(types::v1::MIGRATION_APPROVER, "migrations.approve"));
  EXPECT_TRUE(RoleHas(types::v1::ADMIN, "migrations.approve"));
  for (const Role role :
       {types::v1::VIEWER, types::v1::OPERATOR, types::v1::TENANT_ADMIN, types::v1::NODE}) {
    EXPECT_FALSE(RoleHas(role, "migrations.approve")) << types::v1::Role_Name(role);
  }
  // An approver decides about what an operator started, and starts nothing.
  for (const char* permission : {"migrations.create", "migrations.control", "migrations.update"}) {
    EXPECT_FALSE(RoleHas(types::v1::MIGRATION_APPROVER, permission)) << permission;
    EXPECT_TRUE(RoleHas(types::v1::OPERATOR, permission)) << permission;
  }
}

TEST(Access, MigrationsAreVerifiedByThoseWhoSteerOrApproveThem) {
  for (const Role role : {types::v1::OPERATOR, types::v1::MIGRATION_APPROVER, types::v1::ADMIN})
    EXPECT_TRUE(RoleHas(role, "migrations.verify")) << types::v1::Role_Name(role);
  // A verification makes hosts work.
  for (const Role role : {types::v1::VIEWER, types::v1::TENANT_ADMIN, types::v1::NODE})
    EXPECT_FALSE(RoleHas(role, "migrations.verify")) << types::v1::Role_Name(role);
}

TEST(Access, EveryRoleForTheFleet_MayDoWhatItsPermissionsSay) {
  for (const MethodDescriptor* method : ApiMethods()) {
    const types::v1::AccessRule& rule = *RuleOf(*method);
    const auto request = RequestFor(*method, "tenants/a/pools/p");
    for (const Role role : kBindable) {
      SCOPED_TRACE(method->full_name() + " as " + types::v1::Role_Name(role));
      bool expected = rule.scope() == types::v1::OPEN;
      const bool reachable = rule.scope() == types::v1::FLEET || rule.scope() == types::v1::TENANT;
      // A tenant administrator is restricted to its tenant.
      if (reachable && role != types::v1::TENANT_ADMIN) expected = RoleHas(role, rule.permission());
      const Decision decision = Decide(WithRole(role), *method, *request);
      EXPECT_EQ(decision.allowed, expected);
      EXPECT_EQ(decision.why_not.empty(), expected);
    }
  }
}

TEST(Access, ViewersReadAndNothingElse) {
  for (const MethodDescriptor* method : ApiMethods()) {
    const std::string& name = method->name();
    const bool reads = name.starts_with("Get") || name.starts_with("List") ||
                       name.starts_with("Watch") || name.starts_with("Wait") ||
                       name.starts_with("Explain") || name.starts_with("Diagnose") ||
                       name.starts_with("Find");
    const types::v1::AccessRule& rule = *RuleOf(*method);
    if (!reads) {
      EXPECT_FALSE(RoleHas(types::v1::VIEWER, rule.permission())) << method->full_name();
    }
  }
}

TEST(Access, TenantsAdministrator_ReachesOwnResourcesOnly) {
  for (const Role role : {types::v1::TENANT_ADMIN, types::v1::VIEWER}) {
    const Caller caller = WithRole(role, "tenants/a");
    for (const MethodDescriptor* method : ApiMethods()) {
      SCOPED_TRACE(method->full_name() + " as " + types::v1::Role_Name(role));
      const types::v1::AccessRule& rule = *RuleOf(*method);
      if (rule.scope() == types::v1::OPEN) continue;
      const bool has = rule.scope() == types::v1::TENANT && RoleHas(role, rule.permission());
      for (const char* own : {"tenants/a", "tenants/a/pools/p"}) {
        EXPECT_EQ(Decide(caller, *method, *RequestFor(*method, own)).allowed, has) << own;
      }
      for (const char* foreign : {"tenants/b", "tenants/b/pools/p", "tenants/ab", "tenants/a/b", "",
                                  "tenants/", "tenants/A", "gateways/a"}) {
        EXPECT_FALSE(Decide(caller, *method, *RequestFor(*method, foreign)).allowed) << foreign;
      }
    }
  }
}

TEST(Access, ListOfAllTenants_IsCutToThoseOfTheCaller) {
  const MethodDescriptor* list = nullptr;
  for (const MethodDescriptor* method : ApiMethods()) {
    if (method->name() == "ListPools") list = method;
  }
  ASSERT_NE(list, nullptr);
  Caller caller = WithRole(types::v1::TENANT_ADMIN, "tenants/a");
  caller.grants.push_back({types::v1::VIEWER, "tenants/b"});
  const Decision decision = Decide(caller, *list, *RequestFor(*list, "tenants/-"));
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.tenants, (std::vector<std::string>{"tenants/a", "tenants/b"}));
  const Decision all =
      Decide(WithRole(types::v1::OPERATOR), *list, *RequestFor(*list, "tenants/-"));
  EXPECT_TRUE(all.allowed);
  EXPECT_TRUE(all.tenants.empty());
}

}  // namespace
}  // namespace rocegw::model
