// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/placement.h"

#include <algorithm>
#include <iterator>

#include "controlplane/model/label_selector.h"
#include "proto/rules/relations.h"

namespace rocegw::controllers {
namespace {

using types::v1::Gateway;
using types::v1::GatewaySelector;

const Amounts kNothing;
const Ids kNobody;

std::string LabelKey(const std::string& key, const std::string& value) { return key + "=" + value; }

std::vector<std::string> KeysOf(const GatewaySelector& selector) {
  if (selector.all()) return {"*"};
  std::vector<std::string> keys(selector.names().begin(), selector.names().end());
  // All labels must match, so the candidates of one label include every result.
  if (!selector.labels().empty()) {
    const auto& label = *selector.labels().begin();
    keys.push_back(LabelKey(label.first, label.second));
  }
  return keys;
}

std::vector<std::string> KeysOf(const Gateway& gateway) {
  std::vector<std::string> keys = {"*", gateway.name()};
  for (const auto& [key, value] : gateway.meta().labels()) keys.push_back(LabelKey(key, value));
  return keys;
}

// Returns the amount committed to the tenant itself.
Amounts OwnCommitment(const FleetView& view, const std::string& tenant) {
  const auto known = view.tenants.find(tenant);
  return known == view.tenants.end() ? Amounts()
                                     : Amounts(known->second.object.spec().quota().committed());
}

bool IsNothing(const Amounts& amounts) {
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (amounts[kind] != 0) return false;
  }
  return true;
}

// Calls f for ids in the first list but not in the second.
template <typename F>
void ForEachIn(const Ids& these, const Ids& and_not_these, const F& f) {
  Ids difference;
  std::ranges::set_difference(these, and_not_these, std::back_inserter(difference));
  for (const uint32_t id : difference) f(id);
}

void SortOnce(Ids& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

template <typename Row>
Row& At(uint32_t id, std::vector<Row>& rows) {
  if (rows.size() <= id) rows.resize(id + 1);
  return rows[id];
}

}  // namespace

void Placement::Rebuild(const FleetView& view) {
  *this = Placement();
  std::vector<Move> moves;
  for (const auto& [name, gateway] : view.gateways) SetGateway(view, name, moves);
  for (const auto& [name, pool] : view.pools) {
    moves.clear();
    SetPool(view, name, moves);
  }
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

// Keys -------------------------------------------------------------------------------------

const Placement::Key* Placement::FindKey(const std::string& name) const {
  const auto id = key_names_.Find(name);
  return id.has_value() ? &keys_[*id] : nullptr;
}

void Placement::SetKeys(uint32_t id, const std::vector<std::string>& names, Ids Key::*members,
                        Ids& keys) {
  Ids now;
  for (const std::string& name : names) now.push_back(key_names_.Add(name));
  SortOnce(now);
  if (keys_.size() < key_names_.bound()) keys_.resize(key_names_.bound());
  ForEachIn(now, keys, [&](uint32_t key) { Insert(id, keys_[key].*members); });
  ForEachIn(keys, now, [&](uint32_t key) {
    Key& left = keys_[key];
    Erase(id, left.*members);
    if (!left.pools.empty() || !left.gateways.empty()) return;
    left = Key();
    key_names_.Remove(key);
  });
  keys = std::move(now);
}

Ids Placement::SelectIds(const FleetView& view, const GatewaySelector& selector) const {
  Ids gateways;
  if (selector.all()) {
    const Key* const all = FindKey("*");
    return all == nullptr ? gateways : all->gateways;
  }
  for (const std::string& name : selector.names()) {
    if (const auto id = gateway_names_.Find(name)) gateways.push_back(*id);
  }
  if (!selector.labels().empty()) {
    const auto& label = *selector.labels().begin();
    const Key* const candidates = FindKey(LabelKey(label.first, label.second));
    for (const uint32_t id : candidates == nullptr ? kNobody : candidates->gateways) {
      // A gateway deleted in the same transaction follows.
      const auto gateway = view.gateways.find(gateway_names_.NameOf(id));
      if (gateway != view.gateways.end() && model::Selects(selector, gateway->second.object))
        gateways.push_back(id);
    }
  }
  SortOnce(gateways);
  return gateways;
}

Ids Placement::SelectedIds(const FleetView& view, const Gateway& gateway) const {
  Ids pools;
  for (const std::string& name : KeysOf(gateway)) {
    const Key* const key = FindKey(name);
    for (const uint32_t id : key == nullptr ? kNobody : key->pools) {
      const auto pool = view.pools.find(pool_names_.NameOf(id));
      if (pool != view.pools.end() &&
          model::Selects(pool->second.object.spec().gateways(), gateway))
        pools.push_back(id);
    }
  }
  SortOnce(pools);
  return pools;
}

Names Placement::Select(const FleetView& view, const GatewaySelector& selector) const {
  const Ids gateways = SelectIds(view, selector);
  return NameRange(gateway_names_, gateways).Sorted();
}

Names Placement::SelectedBy(const FleetView& view, const Gateway& gateway) const {
  const Ids pools = SelectedIds(view, gateway);
  return NameRange(pool_names_, pools).Sorted();
}

// Changes -------------------------------------------------------------------------------------

void Placement::SetTenant(const FleetView& view, const std::string& name) {
  const auto id = tenant_names_.Find(name);
  if (!id.has_value()) return;
  Tenant& tenant = tenants_[*id];
  const Amounts own = OwnCommitment(view, name);
  for (const uint32_t gateway : tenant.gateways) {
    const Amounts& pools = CommittedIn(gateway, *id);
    Amounts& all = gateways_[gateway].committed;
    all.Subtract(tenant.own.Max(pools));
    all.Add(own.Max(pools));
  }
  tenant.own = own;
}

uint32_t Placement::AddTenant(const FleetView& view, const std::string& name) {
  const bool is_new = !tenant_names_.Find(name).has_value();
  const uint32_t id = tenant_names_.Add(name);
  Tenant& tenant = At(id, tenants_);
  if (is_new) tenant.own = OwnCommitment(view, name);
  return id;
}

void Placement::RemovePool(uint32_t pool) {
  Placed& placed = pools_[pool];
  SetKeys(pool, {}, &Key::pools, placed.keys);
  Tenant& tenant = tenants_[placed.tenant];
  if (--tenant.pools == 0) {
    tenant = Tenant();
    tenant_names_.Remove(placed.tenant);
  }
  placed = Placed();
  pool_names_.Remove(pool);
}

void Placement::SetPool(const FleetView& view, const std::string& name, std::vector<Move>& moves) {
  const auto known = view.pools.find(name);
  const bool there = known != view.pools.end();
  auto id = pool_names_.Find(name);
  if (!there && !id.has_value()) return;
  const types::v1::PoolSpec& spec =
      there ? known->second.object.spec() : types::v1::PoolSpec::default_instance();
  if (!id.has_value()) {
    id = pool_names_.Add(name);
    Placed& fresh = At(*id, pools_);
    fresh.tenant = AddTenant(view, model::NameOf(name).Tenant());
    ++tenants_[fresh.tenant].pools;
  }
  Placed& placed = pools_[*id];
  const Ids were = placed.gateways;
  const Ids are = there ? SelectIds(view, spec.gateways()) : Ids();
  const auto note = [&](uint32_t gateway) {
    moves.push_back({name, gateway_names_.NameOf(gateway)});
  };
  ForEachIn(were, are, [&](uint32_t gateway) {
    Displace(*id, gateway);
    note(gateway);
  });
  const Amounts before = placed.committed;
  placed.committed = Amounts(rules::CommittedOf(spec));
  // Gateways where it stays; those where it arrives follow.
  for (const uint32_t gateway : placed.gateways)
    Change(placed.tenant, gateway, 0, before, placed.committed);
  ForEachIn(are, were, [&](uint32_t gateway) {
    Place(*id, gateway);
    note(gateway);
  });
  if (!there) return RemovePool(*id);
  SetKeys(*id, KeysOf(spec.gateways()), &Key::pools, placed.keys);
}

void Placement::SetGateway(const FleetView& view, const std::string& name,
                           std::vector<Move>& moves) {
  const auto known = view.gateways.find(name);
  const bool there = known != view.gateways.end();
  if (!there && !gateway_names_.Find(name).has_value()) return;
  const uint32_t id = gateway_names_.Add(name);
  Host& host = At(id, gateways_);
  const Ids were = host.pools;
  const Ids are = there ? SelectedIds(view, known->second.object) : Ids();
  const auto note = [&](uint32_t pool) { moves.push_back({pool_names_.NameOf(pool), name}); };
  ForEachIn(were, are, [&](uint32_t pool) {
    Displace(pool, id);
    note(pool);
  });
  ForEachIn(are, were, [&](uint32_t pool) {
    Place(pool, id);
    note(pool);
  });
  SetKeys(id, there ? KeysOf(known->second.object) : std::vector<std::string>(), &Key::gateways,
          host.keys);
  if (there) return;
  host = Host();
  gateway_names_.Remove(id);
}

void Placement::Place(uint32_t pool, uint32_t gateway) {
  Placed& placed = pools_[pool];
  if (!Insert(gateway, placed.gateways)) return;
  Insert(pool, gateways_[gateway].pools);
  Change(placed.tenant, gateway, 1, kNothing, placed.committed);
}

void Placement::Displace(uint32_t pool, uint32_t gateway) {
  Placed& placed = pools_[pool];
  Erase(gateway, placed.gateways);
  Erase(pool, gateways_[gateway].pools);
  Change(placed.tenant, gateway, -1, placed.committed, kNothing);
}

void Placement::Change(uint32_t tenant_id, uint32_t gateway, int pools, const Amounts& before,
                       const Amounts& now) {
  Tenant& tenant = tenants_[tenant_id];
  Host& host = gateways_[gateway];
  auto share = std::ranges::lower_bound(host.shares, tenant_id, {}, &Share::tenant);
  const bool was = share != host.shares.end() && share->tenant == tenant_id;
  if (was) host.committed.Subtract(tenant.own.Max(CommittedIn(gateway, tenant_id)));
  if (!IsNothing(before) || !IsNothing(now)) {
    tenant.committed.Subtract(before);
    tenant.committed.Add(now);
    Amounts& sum = committed_[{gateway, tenant_id}];
    sum.Subtract(before);
    sum.Add(now);
    if (IsNothing(sum)) committed_.erase({gateway, tenant_id});
  }
  if (!was) {
    share = host.shares.insert(share, {.tenant = tenant_id, .pools = 0});
    Insert(gateway, tenant.gateways);
  }
  share->pools += static_cast<uint32_t>(pools);
  if (share->pools == 0) {
    host.shares.erase(share);
    Erase(gateway, tenant.gateways);
    return;
  }
  host.committed.Add(tenant.own.Max(CommittedIn(gateway, tenant_id)));
}

// Questions -----------------------------------------------------------------------------------

const Placement::Share* Placement::FindShare(uint32_t gateway, uint32_t tenant) const {
  const auto& shares = gateways_[gateway].shares;
  const auto share = std::ranges::lower_bound(shares, tenant, {}, &Share::tenant);
  return share != shares.end() && share->tenant == tenant ? &*share : nullptr;
}

const Amounts& Placement::CommittedIn(uint32_t gateway, uint32_t tenant) const {
  const auto found = committed_.find({gateway, tenant});
  return found == committed_.end() ? kNothing : found->second;
}

NameRange Placement::GatewaysOf(const std::string& pool) const {
  const auto id = pool_names_.Find(pool);
  return {gateway_names_, id.has_value() ? pools_[*id].gateways : kNobody};
}

NameRange Placement::PoolsOn(const std::string& gateway) const {
  const auto id = gateway_names_.Find(gateway);
  return {pool_names_, id.has_value() ? gateways_[*id].pools : kNobody};
}

bool Placement::HasTenant(const std::string& gateway, const std::string& tenant) const {
  const auto host = gateway_names_.Find(gateway);
  const auto owner = tenant_names_.Find(tenant);
  return host.has_value() && owner.has_value() && FindShare(*host, *owner) != nullptr;
}

Amounts Placement::CommittedOn(const std::string& gateway) const {
  const auto id = gateway_names_.Find(gateway);
  return id.has_value() ? gateways_[*id].committed : Amounts();
}

Amounts Placement::ClaimOn(const std::string& gateway, const std::string& tenant) const {
  const auto host = gateway_names_.Find(gateway);
  const auto owner = tenant_names_.Find(tenant);
  if (!host.has_value() || !owner.has_value() || FindShare(*host, *owner) == nullptr) return {};
  return tenants_[*owner].own.Max(CommittedIn(*host, *owner));
}

Amounts Placement::CommittedOn(const std::string& gateway, const std::string& tenant) const {
  const auto host = gateway_names_.Find(gateway);
  const auto owner = tenant_names_.Find(tenant);
  return host.has_value() && owner.has_value() ? CommittedIn(*host, *owner) : Amounts();
}

Amounts Placement::CommittedBy(const std::string& tenant) const {
  const auto id = tenant_names_.Find(tenant);
  return id.has_value() ? tenants_[*id].committed : Amounts();
}

std::map<std::string, Amounts> Placement::CommittedByHost(const std::string& tenant) const {
  std::map<std::string, Amounts> hosts;
  const auto id = tenant_names_.Find(tenant);
  if (!id.has_value()) return hosts;
  for (const uint32_t gateway : tenants_[*id].gateways)
    hosts[gateway_names_.NameOf(gateway)] = CommittedIn(gateway, *id);
  return hosts;
}

}  // namespace rocegw::controllers
