// SPDX-License-Identifier: Apache-2.0
// All methods of the services for operators and agents, and requests for them. Any thread.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/model/access.h"
#include "rocegw/admin/v1/cc_policies.pb.h"
#include "rocegw/admin/v1/donors.pb.h"
#include "rocegw/admin/v1/gateways.pb.h"
#include "rocegw/admin/v1/migrations.pb.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "rocegw/admin/v1/pools.pb.h"
#include "rocegw/admin/v1/role_bindings.pb.h"
#include "rocegw/admin/v1/tenants.pb.h"
#include "rocegw/admin/v1/upgrades.pb.h"
#include "rocegw/fleet/v1/donors.pb.h"
#include "rocegw/fleet/v1/node.pb.h"
#include "rocegw/fleet/v1/replica.pb.h"

namespace rocegw::testing {

inline std::vector<const google::protobuf::MethodDescriptor*> ApiMethods() {
  std::vector<const google::protobuf::MethodDescriptor*> methods;
  for (const auto* message :
       {admin::v1::GetPoolRequest::descriptor(), admin::v1::GetTenantRequest::descriptor(),
        admin::v1::GetCcPolicyRequest::descriptor(), admin::v1::GetGatewayRequest::descriptor(),
        admin::v1::GetRoleBindingRequest::descriptor(),
        admin::v1::GetOperationRequest::descriptor(), admin::v1::GetMigrationRequest::descriptor(),
        admin::v1::GetUpgradeRequest::descriptor(), admin::v1::GetDonorRequest::descriptor(),
        fleet::v1::JoinRequest::descriptor(), fleet::v1::ReportDonorsRequest::descriptor(),
        fleet::v1::ForwardRequest::descriptor()}) {
    for (int s = 0; s < message->file()->service_count(); ++s) {
      const auto& service = *message->file()->service(s);
      for (int m = 0; m < service.method_count(); ++m) methods.push_back(service.method(m));
    }
  }
  return methods;
}

// Sets the field at a path such as "pool.name" and creates the messages around it. Does nothing if
// there is no such field.
inline void SetAt(google::protobuf::Message& request, std::string path,
                  const std::function<void(google::protobuf::Message&,
                                           const google::protobuf::FieldDescriptor&)>& write) {
  google::protobuf::Message* message = &request;
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.')) {
    const auto* field = message->GetDescriptor()->FindFieldByName(path.substr(0, dot));
    if (field == nullptr) return;
    message = message->GetReflection()->MutableMessage(message, field);
    path = path.substr(dot + 1);
  }
  const auto* field = message->GetDescriptor()->FindFieldByName(path);
  if (field != nullptr) write(*message, *field);
}

// Returns a request with the name in the field that the method's rule reads.
inline std::unique_ptr<google::protobuf::Message> RequestFor(
    const google::protobuf::MethodDescriptor& method, const std::string& name) {
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  std::unique_ptr<google::protobuf::Message> request(
      factory->GetPrototype(method.input_type())->New());
  SetAt(*request, model::RuleOf(method)->resource_field(), [&](auto& message, const auto& field) {
    message.GetReflection()->SetString(&message, &field, name);
  });
  return request;
}

}  // namespace rocegw::testing
