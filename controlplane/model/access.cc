// SPDX-License-Identifier: Apache-2.0
#include "controlplane/model/access.h"

#include <algorithm>
#include <array>

#include "controlplane/model/resource_name.h"

namespace rocegw::model {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using types::v1::AccessRule;
using types::v1::Role;

// "*" stands for any word: "*.get" is every permission to read single objects.
struct RoleRow {
  Role role;
  std::string_view permissions;
};

constexpr std::array kRoles = {
    RoleRow{types::v1::VIEWER,
            "tenants.get tenants.list pools.get pools.list pools.explain ccPolicies.get "
            "ccPolicies.list "
            "gateways.get gateways.list gateways.inspect operations.get operations.list "
            "migrations.get migrations.list upgrades.get upgrades.list "
            "donors.get donors.list donors.find"},
    RoleRow{types::v1::OPERATOR,
            "tenants.get tenants.list pools.* ccPolicies.* gateways.get gateways.list "
            "gateways.create gateways.update "
            "gateways.delete gateways.inspect gateways.capture gateways.test gateways.drain "
            "gateways.join "
            "operations.* audit.list "
            "audit.verify migrations.get migrations.list migrations.create migrations.control "
            "migrations.update migrations.verify upgrades.* donors.get donors.list donors.create "
            "donors.update donors.delete donors.drain donors.find"},
    RoleRow{types::v1::TENANT_ADMIN, "tenants.get pools.* donors.find"},
    RoleRow{types::v1::MIGRATION_APPROVER,
            "operations.get operations.list gateways.get gateways.list migrations.get "
            "migrations.list migrations.approve migrations.verify"},
    RoleRow{types::v1::ADMIN,
            "tenants.* pools.* ccPolicies.* gateways.* roleBindings.* operations.* audit.* "
            "migrations.* upgrades.* donors.*"},
    RoleRow{types::v1::NODE, "nodes.renew nodes.keys nodes.sync nodes.tunnel nodes.donors"},
};

bool Covers(std::string_view pattern, std::string_view permission) {
  if (pattern == permission) return true;
  return pattern.ends_with(".*") && permission.starts_with(pattern.substr(0, pattern.size() - 1));
}

// Returns the text at "pool.name"; empty if a part of the path is unset.
std::string TextAt(const Message& message, std::string_view path) {
  const size_t dot = path.find('.');
  const FieldDescriptor* field =
      message.GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
  if (field == nullptr || field->is_repeated()) return {};
  if (dot == std::string_view::npos) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_STRING) return {};
    return message.GetReflection()->GetString(message, field);
  }
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return {};
  return TextAt(message.GetReflection()->GetMessage(message, field), path.substr(dot + 1));
}

Decision Allowed() { return {.allowed = true, .why_not = {}, .tenants = {}}; }
Decision Denied(std::string why) {
  return {.allowed = false, .why_not = std::move(why), .tenants = {}};
}

// Range of the grants with the permission: the fleet, or these tenants.
struct Reach {
  bool fleet = false;
  std::vector<std::string> tenants;
};

Reach ReachOf(const Caller& caller, std::string_view permission) {
  Reach reach;
  for (const Grant& grant : caller.grants) {
    if (!RoleHas(grant.role, permission)) continue;
    if (grant.tenant.empty()) {
      // A tenant administrator without a tenant has no rights.
      reach.fleet |= grant.role != types::v1::TENANT_ADMIN;
    } else {
      reach.tenants.push_back(grant.tenant);
    }
  }
  return reach;
}

Decision DecideTenant(const Reach& reach, const AccessRule& rule, const Message& request) {
  if (reach.fleet) return Allowed();
  if (reach.tenants.empty()) return Denied("the permission " + rule.permission() + " is needed");
  const std::string text = TextAt(request, rule.resource_field());
  const std::optional<ResourceName> name = ParseResourceName(text, true);
  const std::string tenant = name.has_value() ? name->Tenant() : std::string();
  if (tenant == "tenants/-") return {.allowed = true, .why_not = {}, .tenants = reach.tenants};
  if (std::ranges::count(reach.tenants, tenant) != 0) return Allowed();
  return Denied("the permission " + rule.permission() + " is needed for " +
                (tenant.empty() ? "this resource" : tenant));
}

}  // namespace

const AccessRule* RuleOf(const MethodDescriptor& method) {
  if (!method.options().HasExtension(types::v1::access)) return nullptr;
  return &method.options().GetExtension(types::v1::access);
}

bool RoleHas(Role role, std::string_view permission) {
  const auto* const row = std::ranges::find(kRoles, role, &RoleRow::role);
  if (row == kRoles.end()) return false;
  std::string_view rest = row->permissions;
  while (!rest.empty()) {
    const size_t space = rest.find(' ');
    if (Covers(rest.substr(0, space), permission)) return true;
    rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  }
  return false;
}

bool MayFleetWide(const Caller& caller, std::string_view permission) {
  return ReachOf(caller, permission).fleet;
}

Decision Decide(const Caller& caller, const MethodDescriptor& method, const Message& request) {
  const AccessRule* const rule = RuleOf(method);
  if (rule == nullptr) return Denied("the method has no access rule");
  const std::string& permission = rule->permission();
  switch (rule->scope()) {
    case types::v1::OPEN:
      return Allowed();
    case types::v1::GATEWAY: {
      if (caller.node.empty()) return Denied("a node's certificate is needed");
      if (!RoleHas(types::v1::NODE, permission)) return Denied("nodes may not do this");
      if (TextAt(request, rule->resource_field()) != caller.node) {
        return Denied("the certificate is for " + caller.node + ", a node speaks only for itself");
      }
      return Allowed();
    }
    case types::v1::CONTROLLER:
      return caller.controller ? Allowed() : Denied("only controllers may do this");
    case types::v1::TENANT:
      return DecideTenant(ReachOf(caller, permission), *rule, request);
    case types::v1::FLEET:
      return ReachOf(caller, permission).fleet
                 ? Allowed()
                 : Denied("the permission " + permission + " is needed for the fleet");
    default:
      return Denied("the method's access rule has no scope");
  }
}

}  // namespace rocegw::model
