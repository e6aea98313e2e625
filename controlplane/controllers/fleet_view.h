// SPDX-License-Identifier: Apache-2.0
// View of all objects of the fleet at one revision of the store. A plain value: a follower of the
// store owns it and applies each transaction; controllers read it. One thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "controlplane/model/resource_name.h"
#include "controlplane/store/transaction.h"
#include "rocegw/types/v1/cc_policy.pb.h"
#include "rocegw/types/v1/donor.pb.h"
#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/operation.pb.h"
#include "rocegw/types/v1/pool.pb.h"
#include "rocegw/types/v1/role_binding.pb.h"
#include "rocegw/types/v1/tenant.pb.h"

namespace rocegw::controllers {

// Intent and status together, with the etag of the intent. A status without an intent is ignored.
template <typename Object>
struct Known {
  Object object;
  store::Revision intent_revision = 0;
  store::Revision status_revision = 0;  // 0: no status
};

// By resource name.
template <typename Object>
using Objects = std::map<std::string, Known<Object>>;

struct FleetView {
  store::Revision revision = 0;
  Objects<types::v1::Tenant> tenants;
  Objects<types::v1::Pool> pools;
  Objects<types::v1::CcPolicy> cc_policies;
  Objects<types::v1::Gateway> gateways;
  Objects<types::v1::RoleBinding> role_bindings;
  Objects<types::v1::Operation> operations;
  Objects<types::v1::Donor> donors;
  // Names of tenants with a limit over all donors, or with shares of one.
  std::set<std::string> tenants_with_shares;
  // Names of the role bindings by subject, for admission.
  std::map<std::string, std::set<std::string>> bindings_of;
  // Gateways that report an address; several only until the controllers have decided its owner
  // (address_claims.h).
  std::map<std::string, std::set<std::string>> gateways_at;
};

template <typename Object>
const Objects<Object>& ObjectsOf(const FleetView& view) {
  if constexpr (std::is_same_v<Object, types::v1::Tenant>) {
    return view.tenants;
  } else if constexpr (std::is_same_v<Object, types::v1::Pool>) {
    return view.pools;
  } else if constexpr (std::is_same_v<Object, types::v1::CcPolicy>) {
    return view.cc_policies;
  } else if constexpr (std::is_same_v<Object, types::v1::Gateway>) {
    return view.gateways;
  } else if constexpr (std::is_same_v<Object, types::v1::RoleBinding>) {
    return view.role_bindings;
  } else if constexpr (std::is_same_v<Object, types::v1::Donor>) {
    return view.donors;
  } else {
    static_assert(std::is_same_v<Object, types::v1::Operation>);
    return view.operations;
  }
}

struct Changed {
  model::ResourceName name;
  bool intent = false;
  bool addresses = false;  // gateway: the addresses for its peers changed
};

// Applies one transaction. Returns the changed objects, each once. Keys of other users of the
// store, and values that are not messages, are ignored.
std::vector<Changed> Apply(const store::Changes& changes, FleetView& view);

// Loads the first state: the whole store at one revision.
void Load(const std::vector<store::Entry>& entries, store::Revision revision, FleetView& view);

}  // namespace rocegw::controllers
