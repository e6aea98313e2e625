// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/admission.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/security/auth_context.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>

#include "controlplane/model/check.h"
#include "controlplane/model/resource_name.h"

namespace rocegw::api {
namespace {

using google::protobuf::MethodDescriptor;

constexpr std::chrono::seconds kLongestDeadline(60);
// A caller whose clock differs may ask for 60 s and is not refused.
constexpr std::chrono::seconds kDeadlineSlack(1);
constexpr std::string_view kNodePath = "/node/";
constexpr std::string_view kController = "/controller";
constexpr std::string_view kScheme = "spiffe://";

std::string FirstProperty(const grpc::AuthContext& auth, const char* name) {
  const auto values = auth.FindPropertyValues(name);
  return values.empty() ? std::string() : std::string(values[0].data(), values[0].size());
}

// Returns "gateways/G" for "spiffe://DOMAIN/node/G"; empty: another principal.
std::string NodeOf(const std::string& principal) {
  if (!principal.starts_with(kScheme)) return {};
  const size_t path = principal.find('/', kScheme.size());
  if (path == std::string::npos || principal.compare(path, kNodePath.size(), kNodePath) != 0)
    return {};
  std::string name = "gateways/" + principal.substr(path + kNodePath.size());
  return model::ParseResourceName(name).has_value() ? name : std::string();
}

// "spiffe://DOMAIN/controller"
bool IsController(const std::string& principal) {
  if (!principal.starts_with(kScheme)) return false;
  const size_t path = principal.find('/', kScheme.size());
  return path != std::string::npos && principal.compare(path, std::string::npos, kController) == 0;
}

}  // namespace

const MethodDescriptor& MethodOf(const google::protobuf::Message& request) {
  static std::mutex mutex;
  static std::map<const google::protobuf::Descriptor*, const MethodDescriptor*> known;
  const auto* input = request.GetDescriptor();
  const std::lock_guard lock(mutex);
  const MethodDescriptor*& method = known[input];
  for (int s = 0; method == nullptr && s < input->file()->service_count(); ++s) {
    const auto& service = *input->file()->service(s);
    for (int m = 0; method == nullptr && m < service.method_count(); ++m) {
      if (service.method(m)->input_type() == input) method = service.method(m);
    }
  }
  // Each request type is the input of a method of its file; a test checks all of them.
  if (method == nullptr) std::abort();
  return *method;
}

model::Caller CallerOf(const grpc::ServerContextBase& context, const controllers::FleetView& view) {
  model::Caller caller;
  const auto auth = context.auth_context();
  if (auth == nullptr) return caller;
  if (FirstProperty(*auth, "transport_security_type") == "local") {
    caller.principal = kLocalAdministrator;
    caller.grants.push_back({types::v1::ADMIN, {}});
    return caller;
  }
  if (!auth->IsPeerAuthenticated()) return caller;
  caller.principal = FirstProperty(*auth, "peer_spiffe_id");
  caller.node = NodeOf(caller.principal);
  caller.controller = IsController(caller.principal);
  if (caller.principal.empty() || caller.controller || !caller.node.empty()) return caller;
  const auto bindings = view.bindings_of.find(caller.principal);
  if (bindings == view.bindings_of.end()) return caller;
  for (const std::string& name : bindings->second) {
    const types::v1::RoleBindingSpec& spec = view.role_bindings.at(name).object.spec();
    caller.grants.push_back({spec.role(), spec.tenant()});
  }
  return caller;
}

std::optional<ApiError> Admit(const grpc::CallbackServerContext& context, CallKind kind,
                              const google::protobuf::Message& request,
                              const sync::FleetFollower& follower, Admitted& admitted) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  if (kind == CallKind::kUnary && left > kLongestDeadline + kDeadlineSlack) {
    return ApiError{grpc::StatusCode::INVALID_ARGUMENT,
                    "DEADLINE_REQUIRED",
                    "set a deadline of at most 60 s for this call",
                    {},
                    {}};
  }
  const MethodDescriptor& method = MethodOf(request);
  const model::Caller caller =
      follower.Read([&](const sync::Fleet& fleet) { return CallerOf(context, fleet.view); });
  const model::Decision decision = model::Decide(caller, method, request);
  if (!decision.allowed && caller.principal.empty()) {
    return ApiError{grpc::StatusCode::UNAUTHENTICATED,
                    "NO_CERTIFICATE",
                    "a client certificate is needed",
                    {},
                    {}};
  }
  if (!decision.allowed) return PermissionDenied(caller.principal + ": " + decision.why_not);
  if (auto violations = model::Check(request); !violations.empty())
    return InvalidArgument(std::move(violations));
  admitted.principal = caller.principal;
  admitted.peer = context.peer();
  admitted.method = "/" + method.service()->full_name() + "/" + method.name();
  admitted.tenants = decision.tenants;
  return std::nullopt;
}

}  // namespace rocegw::api
