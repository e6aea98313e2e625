// SPDX-License-Identifier: Apache-2.0
// Admission of calls: a call is served if it has a deadline, its caller is known and has permission
// for the object, and the request follows the rules of its fields. Any thread.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <vector>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/model/access.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

// Principal of ports without certificates: a caller that may open the socket is the administrator.
inline constexpr char kLocalAdministrator[] = "local:admin";

struct Admitted {
  std::string principal;
  std::string peer;
  std::string method;                // "/rocegw.admin.v1.Pools/UpdatePool"
  std::vector<std::string> tenants;  // visible in the answer; empty: all
};

enum class CallKind { kUnary, kStream };

// Returns the method with this request type. A request type belongs to one method, or to several
// with one access rule.
const google::protobuf::MethodDescriptor& MethodOf(const google::protobuf::Message& request);

// Returns the caller by its certificate's URI name, with the roles of the fleet's role bindings.
model::Caller CallerOf(const grpc::ServerContextBase& context, const controllers::FleetView& view);

// Returns nullopt and fills in `admitted`, or returns the reason for a refusal.
std::optional<ApiError> Admit(const grpc::CallbackServerContext& context, CallKind kind,
                              const google::protobuf::Message& request,
                              const sync::FleetFollower& follower, Admitted& admitted);

}  // namespace rocegw::api
