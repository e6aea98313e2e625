// SPDX-License-Identifier: Apache-2.0
// Small fleet that tests write in the form in which the store delivers objects. One thread.
#pragma once

#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/placement.h"
#include "controlplane/model/stored.h"

namespace rocegw::testing {

struct Fleet {
  controllers::FleetView view;
  controllers::Placement placement;
  std::vector<controllers::Changed> changed;  // by the last change
  std::vector<controllers::Move> moves;

  template <typename Object>
  void Put(const Object& object, model::Part part = model::Part::kIntent) {
    Change({.entry = {.key = KeyOf(part, object.name()), .value = object.SerializeAsString()}});
  }
  void Delete(const std::string& name, model::Part part = model::Part::kIntent) {
    Change({.deleted = true, .entry = {.key = KeyOf(part, name)}});
  }

 private:
  static std::string KeyOf(model::Part part, const std::string& name) {
    return model::KeyOf(part, model::ParseResourceName(name).value());
  }
  void Change(store::Change change) {
    store::Changes changes{.revision = view.revision + 1};
    change.entry.mod_revision = changes.revision;
    changes.changes.push_back(std::move(change));
    changed = controllers::Apply(changes, view);
    moves = placement.Update(view, changed);
  }
};

// Returns the object as the store holds it, without status.
template <typename Object>
store::Operation IntentOf(const Object& object) {
  return store::Operation::Put(model::KeyOf(model::Part::kIntent, model::NameOf(object.name())),
                               object.SerializeAsString());
}

inline types::v1::Gateway GatewayWith(const std::string& id, const std::string& zone = {}) {
  types::v1::Gateway gateway;
  gateway.set_name("gateways/" + id);
  if (!zone.empty()) (*gateway.mutable_meta()->mutable_labels())["zone"] = zone;
  return gateway;
}

inline types::v1::Tenant TenantWith(const std::string& id) {
  types::v1::Tenant tenant;
  tenant.set_name("tenants/" + id);
  return tenant;
}

// Returns a pool on all gateways of the zone; an empty zone: on all gateways.
inline types::v1::Pool PoolWith(const std::string& tenant, const std::string& id,
                                const std::string& zone, uint64_t committed_qps = 0) {
  types::v1::Pool pool;
  pool.set_name("tenants/" + tenant + "/pools/" + id);
  if (zone.empty()) {
    pool.mutable_spec()->mutable_gateways()->set_all(true);
  } else {
    (*pool.mutable_spec()->mutable_gateways()->mutable_labels())["zone"] = zone;
  }
  if (committed_qps != 0)
    pool.mutable_spec()->mutable_quota()->mutable_committed()->set_qps(committed_qps);
  return pool;
}

}  // namespace rocegw::testing
