// SPDX-License-Identifier: Apache-2.0
// Kinds of objects that a controller stores, with their names for users. Everything else about a
// kind comes from the descriptors of its service. Constant; any thread.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controlplane/cli/client/call_result.h"

namespace rocegw::cli {

struct Kind {
  std::string_view plural;  // as in resource names: "ccPolicies"
  std::string_view singular;
  std::string_view brief;
  std::string_view parent;  // collection above it: "tenants", "gateways"; empty: none
  bool writable;
  const google::protobuf::Descriptor* object;
  const google::protobuf::ServiceDescriptor* service;

  // Returns the method for `verb` ("Get", "List", ...) with objects of this kind.
  const google::protobuf::MethodDescriptor& Method(std::string_view verb) const;
};

const std::vector<Kind>& Kinds();
// Finds a kind in any spelling: "pools", "Pool", "po"; nullptr: none.
const Kind* FindKind(std::string_view noun);
// Returns the kind of "tenants/T/pools/P"; nullptr: none.
const Kind* KindOfName(std::string_view name);
// Returns "tenant (t), pool (po), ...", for error texts.
std::string KnownKinds();

// Returns the name of an object outside of tenants: "upgrades/u" for "u" and for "upgrades/u".
std::string NameIn(std::string_view collection, std::string_view text);
// Converts a typed name ("web" with a tenant, "blue/web", "tenants/blue/pools/web") to the full
// name. `tenant`: of kinds below tenants.
CallResult FullName(const Kind& kind, std::string_view text, std::string_view tenant,
                    std::string& out);
// Returns the name for tables, without the collections: "blue/web".
std::string ShortName(std::string_view name);

// Returns "/rocegw.admin.v1.Pools/GetPool".
std::string MethodPath(const google::protobuf::MethodDescriptor& method);

}  // namespace rocegw::cli
