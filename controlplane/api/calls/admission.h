// SPDX-License-Identifier: Apache-2.0
// What every call passes before it is served: it has a deadline, its caller is known and allowed to
// do this to that, and the request keeps the rules of its fields. Any thread.
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

// Listening ports that need no certificate: who may open the socket is the administrator.
inline constexpr char kLocalAdministrator[] = "local:admin";

struct Admitted {
  std::string principal;
  std::string peer;
  std::string method;                // "/rocegw.admin.v1.Pools/UpdatePool"
  std::vector<std::string> tenants;  // that an answer may speak of; empty: all
};

enum class CallKind { kUnary, kStream };

// The method that takes such a request. Requests of the API belong to one method, or to several
// with one access rule.
const google::protobuf::MethodDescriptor& MethodOf(const google::protobuf::Message& request);

// Who calls: by the certificate's URI name, with what the fleet's role bindings give it.
model::Caller CallerOf(const grpc::ServerContextBase& context, const controllers::FleetView& view);

// nullopt and `admitted` filled, or why not.
std::optional<ApiError> Admit(const grpc::CallbackServerContext& context, CallKind kind,
                              const google::protobuf::Message& request,
                              const sync::FleetFollower& follower, Admitted& admitted);

}  // namespace rocegw::api
