// SPDX-License-Identifier: Apache-2.0
// Who may call what. Methods say in their descriptors which permission they need and on what
// (AccessRule of types/v1/annotations.proto); roles are sets of permissions; callers have roles,
// for the fleet or for one tenant. What is not allowed is denied: a method without a rule can be
// called by nobody. Pure; any thread.
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
  // URI name of its certificate, "local:root" on the controller's own socket; empty: it showed
  // none.
  std::string principal;
  std::string node;  // "gateways/G" when the certificate is a node's
  bool controller = false;
  std::vector<Grant> grants;
};

// nullptr: the method has no rule.
const types::v1::AccessRule* RuleOf(const google::protobuf::MethodDescriptor& method);

bool RoleHas(types::v1::Role role, std::string_view permission);

// Whatever tenant it is about.
bool MayFleetWide(const Caller& caller, std::string_view permission);

struct Decision {
  bool allowed = false;
  // A sentence for the caller, without what it must not know.
  std::string why_not;
  // Scope TENANT with a wildcard: the only tenants that an answer may speak of; empty: all.
  std::vector<std::string> tenants;
};

Decision Decide(const Caller& caller, const google::protobuf::MethodDescriptor& method,
                const google::protobuf::Message& request);

}  // namespace rocegw::model
