// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/kinds.h"

#include <algorithm>

#include "gateway/base/lower_case.h"
#include "rocegw/admin/v1/cc_policies.pb.h"
#include "rocegw/admin/v1/donors.pb.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "rocegw/admin/v1/pools.pb.h"
#include "rocegw/admin/v1/role_bindings.pb.h"
#include "rocegw/admin/v1/tenants.pb.h"

namespace rocegw::cli {
namespace {

// Naming a request links its file, which contains the service.
template <typename Object, typename GetRequest>
Kind Make(std::string_view plural, std::string_view singular, std::string_view brief,
          std::string_view parent = {}, bool writable = true) {
  return {plural,
          singular,
          brief,
          parent,
          writable,
          Object::descriptor(),
          GetRequest::descriptor()->file()->service(0)};
}

}  // namespace

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kKinds = {
      Make<types::v1::Tenant, admin::v1::GetTenantRequest>("tenants", "tenant", "t"),
      Make<types::v1::Pool, admin::v1::GetPoolRequest>("pools", "pool", "po", "tenants"),
      Make<types::v1::CcPolicy, admin::v1::GetCcPolicyRequest>("ccPolicies", "ccPolicy", "cc"),
      Make<types::v1::Gateway, admin::v1::GetGatewayRequest>("gateways", "gateway", "gw"),
      Make<types::v1::RoleBinding, admin::v1::GetRoleBindingRequest>("roleBindings", "roleBinding",
                                                                     "rb"),
      Make<types::v1::Operation, admin::v1::GetOperationRequest>("operations", "operation", "op",
                                                                 "", false),
      Make<types::v1::Donor, admin::v1::GetDonorRequest>("donors", "donor", "do", "gateways")};
  return kKinds;
}

const google::protobuf::MethodDescriptor& Kind::Method(std::string_view verb) const {
  const bool many = verb == "List" || verb == "Watch";
  std::string noun(many ? plural : singular);
  noun[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(noun[0])));
  return *service->FindMethodByName(std::string(verb) + noun);
}

const Kind* FindKind(std::string_view noun) {
  const std::string lower = LowerCase(noun);
  const auto& kinds = Kinds();
  const auto found = std::ranges::find_if(kinds, [&](const Kind& kind) {
    return lower == LowerCase(kind.plural) || lower == LowerCase(kind.singular) ||
           lower == kind.brief;
  });
  return found == kinds.end() ? nullptr : &*found;
}

const Kind* KindOfName(std::string_view name) {
  const size_t last = name.rfind('/');
  if (last == std::string_view::npos) return nullptr;
  const std::string_view head = name.substr(0, last);
  const std::string_view collection = head.substr(head.rfind('/') + 1);
  const auto& kinds = Kinds();
  const auto found = std::ranges::find(kinds, collection, &Kind::plural);
  return found == kinds.end() ? nullptr : &*found;
}

std::string KnownKinds() {
  std::string text;
  for (const Kind& kind : Kinds()) {
    text += (text.empty() ? "" : ", ") + std::string(kind.plural) + " (" + std::string(kind.brief) +
            ")";
  }
  return text;
}

std::string NameIn(std::string_view collection, std::string_view text) {
  const std::string head = std::string(collection) + "/";
  return text.starts_with(head) ? std::string(text) : head + std::string(text);
}

CallResult FullName(const Kind& kind, std::string_view text, std::string_view tenant,
                    std::string& out) {
  const std::string head = std::string(kind.plural) + "/";
  if (kind.parent.empty()) {
    out = NameIn(kind.plural, text);
    return {};
  }
  const std::string above = std::string(kind.parent) + "/";
  const bool in_tenant = kind.parent == "tenants";
  const size_t slash = text.find('/');
  if (text.starts_with(above)) {
    out = text;
  } else if (slash != std::string_view::npos) {
    out = above + std::string(text.substr(0, slash)) + "/" + head +
          std::string(text.substr(slash + 1));
  } else if (!in_tenant) {
    return {kUsage,
            "whose " + std::string(kind.singular) + " '" + std::string(text) + "'? GATEWAY/" +
                std::string(text),
            {}};
  } else if (!tenant.empty()) {
    out = "tenants/" + ShortName(tenant) + "/" + head + std::string(text);
  } else {
    return {kUsage,
            "whose " + std::string(kind.singular) + " '" + std::string(text) + "'? TENANT/" +
                std::string(text) + ", or --tenant TENANT",
            {}};
  }
  return {};
}

std::string ShortName(std::string_view name) {
  std::string out;
  bool collection = name.find('/') != std::string_view::npos;
  while (!name.empty()) {
    const size_t slash = name.find('/');
    if (!collection) out += (out.empty() ? "" : "/") + std::string(name.substr(0, slash));
    collection = !collection;
    name = slash == std::string_view::npos ? std::string_view() : name.substr(slash + 1);
  }
  return out;
}

std::string MethodPath(const google::protobuf::MethodDescriptor& method) {
  return "/" + method.service()->full_name() + "/" + method.name();
}

}  // namespace rocegw::cli
