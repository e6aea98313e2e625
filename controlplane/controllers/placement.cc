// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/placement.h"

#include <algorithm>
#include <iterator>

#include "controlplane/model/label_selector.h"

namespace rocegw::controllers {
namespace {

using types::v1::Gateway;
using types::v1::GatewaySelector;

const Names kNone;

std::string LabelKey(const std::string& key, const std::string& value) { return key + "=" + value; }

Names KeysOf(const GatewaySelector& selector) {
  if (selector.all()) return {"*"};
  Names keys(selector.names().begin(), selector.names().end());
  // All labels must be there, so one of them finds every candidate.
  if (!selector.labels().empty()) {
    const auto& label = *selector.labels().begin();
    keys.insert(LabelKey(label.first, label.second));
  }
  return keys;
}

Names KeysOf(const Gateway& gateway) {
  Names keys = {"*", gateway.name()};
  for (const auto& [key, value] : gateway.meta().labels()) keys.insert(LabelKey(key, value));
  return keys;
}

void Unlink(std::map<std::string, Names>& by_key, const Names& keys, const std::string& name) {
  for (const std::string& key : keys) {
    const auto found = by_key.find(key);
    found->second.erase(name);
    if (found->second.empty()) by_key.erase(found);
  }
}

// What is committed to the tenant itself.
Amounts OwnOf(const FleetView& view, const std::string& tenant) {
  const auto known = view.tenants.find(tenant);
  return known == view.tenants.end() ? Amounts()
                                     : Amounts(known->second.object.spec().quota().committed());
}

const Names& At(const std::map<std::string, Names>& by_key, const std::string& key) {
  const auto found = by_key.find(key);
  return found == by_key.end() ? kNone : found->second;
}

}  // namespace

void Placement::Rebuild(const FleetView& view) {
  *this = Placement();
  std::vector<Move> moves;
  for (const auto& [name, gateway] : view.gateways) SetGateway(view, name, moves);
  for (const auto& [name, pool] : view.pools) SetPool(view, name, moves);
}

std::vector<Move> Placement::Update(const FleetView& view, const std::vector<Changed>& changed) {
  std::vector<Move> moves;
  for (const Changed& object : changed) {
    if (!object.intent) continue;
    const model::Collection collection = object.name.collection;
    if (collection == model::Collection::kTenants) SetTenant(view, object.name.Text());
    if (collection == model::Collection::kPools) SetPool(view, object.name.Text(), moves);
    if (collection == model::Collection::kGateways) SetGateway(view, object.name.Text(), moves);
  }
  return moves;
}

Names Placement::Select(const FleetView& view, const GatewaySelector& selector) const {
  Names gateways;
  for (const std::string& key : KeysOf(selector)) {
    for (const std::string& name : At(gateways_by_key_, key)) {
      if (model::Selects(selector, view.gateways.at(name).object)) gateways.insert(name);
    }
  }
  return gateways;
}

Names Placement::SelectedBy(const FleetView& view, const Gateway& gateway) const {
  Names pools;
  for (const std::string& key : KeysOf(gateway)) {
    for (const std::string& name : At(pools_by_key_, key)) {
      if (model::Selects(view.pools.at(name).object.spec().gateways(), gateway)) pools.insert(name);
    }
  }
  return pools;
}

void Placement::SetTenant(const FleetView& view, const std::string& name) {
  const auto known = tenants_.find(name);
  if (known == tenants_.end()) return;
  Tenant& tenant = known->second;
  const Amounts own = OwnOf(view, name);
  for (const auto& [gateway, share] : tenant.by_gateway) {
    Amounts& all = gateways_.at(gateway).committed;
    all.Subtract(tenant.own.Max(share.committed));
    all.Add(own.Max(share.committed));
  }
  tenant.own = own;
}

void Placement::SetPool(const FleetView& view, const std::string& name, std::vector<Move>& moves) {
  Names were;
  if (const auto old = pools_.find(name); old != pools_.end()) {
    were = old->second.gateways;
    for (const std::string& gateway : were) Displace(name, gateway);
    Unlink(pools_by_key_, old->second.keys, name);
    pools_.erase(old);
  }
  const auto pool = view.pools.find(name);
  if (pool != view.pools.end()) {
    const types::v1::PoolSpec& spec = pool->second.object.spec();
    Placed& placed = pools_[name];
    placed.keys = KeysOf(spec.gateways());
    placed.committed = Amounts(spec.quota().committed());
    placed.tenant = model::NameOf(name).Tenant();
    for (const std::string& key : placed.keys) pools_by_key_[key].insert(name);
    for (const std::string& gateway : Select(view, spec.gateways())) Place(view, name, gateway);
  }
  Names moved;
  std::ranges::set_symmetric_difference(were, GatewaysOf(name), std::inserter(moved, moved.end()));
  for (const std::string& gateway : moved) moves.push_back({name, gateway});
}

void Placement::SetGateway(const FleetView& view, const std::string& name,
                           std::vector<Move>& moves) {
  const auto gateway = view.gateways.find(name);
  const bool there = gateway != view.gateways.end();
  Names were;
  if (const auto old = gateways_.find(name); old != gateways_.end()) {
    were = old->second.pools;
    for (const std::string& pool : were) Displace(pool, name);
    Unlink(gateways_by_key_, old->second.keys, name);
    gateways_.erase(old);
  }
  if (there) {
    Names& keys = gateways_[name].keys;
    keys = KeysOf(gateway->second.object);
    for (const std::string& key : keys) gateways_by_key_[key].insert(name);
    for (const std::string& pool : SelectedBy(view, gateway->second.object))
      Place(view, pool, name);
  }
  Names moved;
  std::ranges::set_symmetric_difference(were, PoolsOn(name), std::inserter(moved, moved.end()));
  for (const std::string& pool : moved) moves.push_back({pool, name});
}

void Placement::Place(const FleetView& view, const std::string& pool, const std::string& gateway) {
  Placed& placed = pools_.at(pool);
  Host& host = gateways_.at(gateway);
  if (!placed.gateways.insert(gateway).second) return;
  host.pools.insert(pool);
  const auto [at, first] = tenants_.try_emplace(placed.tenant);
  Tenant& tenant = at->second;
  if (first) tenant.own = OwnOf(view, placed.tenant);
  tenant.committed.Add(placed.committed);
  Share& share = tenant.by_gateway[gateway];
  if (share.pools != 0) host.committed.Subtract(tenant.own.Max(share.committed));
  share.committed.Add(placed.committed);
  ++share.pools;
  host.committed.Add(tenant.own.Max(share.committed));
}

void Placement::Displace(const std::string& pool, const std::string& gateway) {
  Placed& placed = pools_.at(pool);
  Host& host = gateways_.at(gateway);
  placed.gateways.erase(gateway);
  host.pools.erase(pool);
  Tenant& tenant = tenants_.at(placed.tenant);
  tenant.committed.Subtract(placed.committed);
  Share& share = tenant.by_gateway.at(gateway);
  host.committed.Subtract(tenant.own.Max(share.committed));
  share.committed.Subtract(placed.committed);
  if (--share.pools == 0) {
    tenant.by_gateway.erase(gateway);
  } else {
    host.committed.Add(tenant.own.Max(share.committed));
  }
  if (tenant.by_gateway.empty()) tenants_.erase(placed.tenant);
}

const Names& Placement::GatewaysOf(const std::string& pool) const {
  const auto found = pools_.find(pool);
  return found == pools_.end() ? kNone : found->second.gateways;
}

const Names& Placement::PoolsOn(const std::string& gateway) const {
  const auto found = gateways_.find(gateway);
  return found == gateways_.end() ? kNone : found->second.pools;
}

bool Placement::HasTenant(const std::string& gateway, const std::string& tenant) const {
  const auto owner = tenants_.find(tenant);
  return owner != tenants_.end() && owner->second.by_gateway.contains(gateway);
}

Amounts Placement::CommittedOn(const std::string& gateway) const {
  const auto found = gateways_.find(gateway);
  return found == gateways_.end() ? Amounts() : found->second.committed;
}

Amounts Placement::ClaimOn(const std::string& gateway, const std::string& tenant) const {
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return {};
  const auto share = owner->second.by_gateway.find(gateway);
  if (share == owner->second.by_gateway.end()) return {};
  return owner->second.own.Max(share->second.committed);
}

Amounts Placement::CommittedOn(const std::string& gateway, const std::string& tenant) const {
  const auto owner = tenants_.find(tenant);
  if (owner == tenants_.end()) return {};
  const auto share = owner->second.by_gateway.find(gateway);
  return share == owner->second.by_gateway.end() ? Amounts() : share->second.committed;
}

Amounts Placement::CommittedBy(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? Amounts() : found->second.committed;
}

std::map<std::string, Amounts> Placement::CommittedByHost(const std::string& tenant) const {
  std::map<std::string, Amounts> hosts;
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end()) return hosts;
  for (const auto& [gateway, share] : found->second.by_gateway) hosts[gateway] = share.committed;
  return hosts;
}

}  // namespace rocegw::controllers
