// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/gateway_config.h"

#include <algorithm>

#include "controlplane/model/objects_digest.h"

namespace rocegw::controllers {
namespace {

using model::Collection;
using model::NameOf;
using model::ResourceName;
using types::v1::ConfigObject;

void FillGateway(const types::v1::Gateway& gateway, types::v1::GatewayConfig& config) {
  config.set_name(gateway.name());
  config.set_admin_state(gateway.spec().admin_state());
  config.set_on_deadline(gateway.spec().on_deadline());
  if (gateway.spec().has_drain_deadline())
    *config.mutable_drain_deadline() = gateway.spec().drain_deadline();
  if (gateway.spec().has_capacity()) *config.mutable_capacity() = gateway.spec().capacity();
}

void FillTenant(const types::v1::Tenant& tenant, types::v1::TenantConfig& config) {
  config.set_name(tenant.name());
  config.set_uid(tenant.meta().uid());
  *config.mutable_quota() = tenant.spec().quota();
  config.set_weight(tenant.spec().weight());
  *config.mutable_allowed_peers() = tenant.spec().allowed_peers();
}

void FillPool(const types::v1::Pool& pool, types::v1::PoolConfig& config) {
  config.set_name(pool.name());
  config.set_uid(pool.meta().uid());
  *config.mutable_spec() = pool.spec();
  // The selector is evaluated here; the gateway does not need it.
  config.mutable_spec()->clear_gateways();
}

// Rank in the order of application: removals last; within each group referenced objects first
// (removals: last).
int Rank(const ConfigObject& object) {
  if (object.value_case() != ConfigObject::kRemoved) return object.value_case();
  constexpr int kRemovals = 100;
  switch (NameOf(object.name()).collection) {
    case Collection::kGateways:
      return kRemovals;
    case Collection::kPools:
      return kRemovals + 1;
    case Collection::kTenants:
      return kRemovals + 2;
    default:
      return kRemovals + 3;
  }
}

}  // namespace

ConfigObject ConfigOf(const FleetView& view, const Placement& placement, const std::string& gateway,
                      const ResourceName& object) {
  ConfigObject config;
  config.set_name(object.Text());
  config.set_removed(true);
  config.set_revision(view.revision);
  const auto fill = [&](const auto& objects, const auto& fill_value) {
    const auto known = objects.find(config.name());
    if (known == objects.end()) return;
    config.set_revision(known->second.intent_revision);
    fill_value(known->second.object);
  };
  switch (object.collection) {
    case Collection::kGateways:
      fill(view.gateways, [&](const types::v1::Gateway& known) {
        if (config.name() == gateway) return FillGateway(known, *config.mutable_gateway());
        if (known.status().addresses().empty()) return;
        config.set_revision(view.gateways.at(config.name()).status_revision);
        config.mutable_peer()->set_name(known.name());
        *config.mutable_peer()->mutable_addresses() = known.status().addresses();
      });
      break;
    case Collection::kTenants:
      if (!placement.HasTenant(gateway, config.name())) break;
      fill(view.tenants,
           [&](const types::v1::Tenant& known) { FillTenant(known, *config.mutable_tenant()); });
      break;
    case Collection::kPools:
      if (!placement.PoolsOn(gateway).contains(config.name())) break;
      fill(view.pools,
           [&](const types::v1::Pool& known) { FillPool(known, *config.mutable_pool()); });
      break;
    case Collection::kCcPolicies:
      fill(view.cc_policies, [&](const types::v1::CcPolicy& known) {
        config.mutable_cc_policy()->set_name(known.name());
        config.mutable_cc_policy()->set_window_bytes(known.spec().window_bytes());
      });
      break;
    default:
      break;
  }
  return config;
}

std::vector<ConfigObject> FullConfig(const FleetView& view, const Placement& placement,
                                     const std::string& gateway) {
  std::set<std::string> names = {gateway};
  for (const auto& [name, policy] : view.cc_policies) names.insert(name);
  for (const std::string& pool : placement.PoolsOn(gateway)) {
    names.insert(pool);
    names.insert(NameOf(pool).Tenant());
  }
  for (const auto& [name, peer] : view.gateways) names.insert(name);
  std::vector<ConfigObject> objects;
  for (const std::string& name : names) {
    ConfigObject object = ConfigOf(view, placement, gateway, NameOf(name));
    if (!object.removed()) objects.push_back(std::move(object));
  }
  SortForApply(objects);
  return objects;
}

uint64_t ConfigDigest(const FleetView& view, const Placement& placement,
                      const std::string& gateway) {
  model::ObjectsDigest digest;
  for (const auto& [name, known] : view.gateways) {
    const auto& addresses = known.object.status().addresses();
    if (name == gateway) {
      digest.Add(name, known.intent_revision);
    } else if (!addresses.empty()) {
      digest.AddPeer(name, addresses);
    }
  }
  for (const auto& [name, known] : view.cc_policies) digest.Add(name, known.intent_revision);
  std::set<std::string> tenants;
  for (const std::string& pool : placement.PoolsOn(gateway)) {
    digest.Add(pool, view.pools.at(pool).intent_revision);
    tenants.insert(NameOf(pool).Tenant());
  }
  for (const std::string& tenant : tenants) {
    const auto known = view.tenants.find(tenant);
    if (known != view.tenants.end()) digest.Add(tenant, known->second.intent_revision);
  }
  return digest.value();
}

Touches Touched(const FleetView& view, const Placement& placement,
                const std::vector<Changed>& changed, const std::vector<Move>& moves) {
  Touches touches;
  for (const Move& move : moves) {
    touches[move.gateway].insert(move.pool);
    touches[move.gateway].insert(NameOf(move.pool).Tenant());
  }
  for (const Changed& object : changed) {
    const std::string name = object.name.Text();
    if (object.addresses) {
      for (const auto& [gateway, known] : view.gateways) {
        if (gateway != name) touches[gateway].insert(name);
      }
    }
    if (!object.intent) continue;
    switch (object.name.collection) {
      case Collection::kGateways:
        touches[name].insert(name);
        break;
      case Collection::kTenants:
        for (const auto& [gateway, committed] : placement.CommittedByHost(name))
          touches[gateway].insert(name);
        break;
      case Collection::kPools:
        for (const std::string& gateway : placement.GatewaysOf(name)) touches[gateway].insert(name);
        break;
      case Collection::kCcPolicies:
        for (const auto& [gateway, known] : view.gateways) touches[gateway].insert(name);
        break;
      default:
        break;
    }
  }
  return touches;
}

void SortForApply(std::vector<ConfigObject>& objects) {
  std::ranges::stable_sort(objects, {}, Rank);
}

}  // namespace rocegw::controllers
