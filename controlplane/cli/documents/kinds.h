// SPDX-License-Identifier: Apache-2.0
// The kinds of objects that a controller keeps, and how people call them. Everything about a kind
// comes from the descriptors of its service. Constant; any thread.
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
  bool in_tenant;
  bool writable;
  const google::protobuf::Descriptor* object;
  const google::protobuf::ServiceDescriptor* service;

  // The method that does `verb` ("Get", "List", ...) with objects of this kind.
  const google::protobuf::MethodDescriptor& Method(std::string_view verb) const;
};

const std::vector<Kind>& Kinds();
// In any case: "pools", "Pool", "po"; nullptr: no such kind.
const Kind* FindKind(std::string_view noun);
// The kind of "tenants/T/pools/P"; nullptr: none.
const Kind* KindOfName(std::string_view name);
// "tenant (t), pool (po), ...", for messages.
std::string KnownKinds();

// What people write ("web" with a tenant, "blue/web", "tenants/blue/pools/web") as the full name.
CallResult FullName(const Kind& kind, std::string_view text, std::string_view tenant,
                    std::string& out);
// What tables show: without the collections. "blue/web"
std::string ShortName(std::string_view name);

// "/rocegw.admin.v1.Pools/GetPool"
std::string MethodPath(const google::protobuf::MethodDescriptor& method);

}  // namespace rocegw::cli
