// SPDX-License-Identifier: Apache-2.0
// Access control. Methods state in their descriptors which permission they require on which object
// (AccessRule of types/v1/annotations.proto); roles are sets of permissions; callers have roles for
// the fleet or for one tenant. Everything else is denied: a method without a rule can be called by
// no one. Pure; any thread.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rocegw/types/v1/annotations.pb.h"
#include "rocegw/types/v1/role_binding.pb.h"

namespace rocegw::model {

struct Grant {
  types::v1::Role role = types::v1::ROLE_UNSPECIFIED;
  std::string tenant;  // "tenants/T"; empty: the fleet
};

struct Caller {
  // URI name of its certificate, "local:root" on the controller's own socket; empty: no
  // certificate.
  std::string principal;
  std::string node;  // "gateways/G" if the certificate is a node's
  bool controller = false;
  std::vector<Grant> grants;
};

// Returns nullptr if the method has no rule.
const types::v1::AccessRule* RuleOf(const google::protobuf::MethodDescriptor& method);

bool RoleHas(types::v1::Role role, std::string_view permission);

// Returns true if the caller has the permission for the whole fleet.
bool MayFleetWide(const Caller& caller, std::string_view permission);

struct Decision {
  bool allowed = false;
  // Sentence for the caller, without secrets.
  std::string why_not;
  // Scope TENANT with a wildcard: the only tenants visible in the answer; empty: all.
  std::vector<std::string> tenants;
};

Decision Decide(const Caller& caller, const google::protobuf::MethodDescriptor& method,
                const google::protobuf::Message& request);

}  // namespace rocegw::model
