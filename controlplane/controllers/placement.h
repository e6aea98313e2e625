// SPDX-License-Identifier: Apache-2.0
// Which pools are on which gateways, and what is committed there. Kept up to date with each change
// of the view it belongs to, in a time that depends on what changed and not on the size of the
// fleet, and in a few bytes for each pool on a gateway: there may be millions. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/controllers/amounts.h"
#include "controlplane/controllers/fleet_view.h"
#include "controlplane/controllers/name_table.h"

namespace rocegw::controllers {

using Names = std::set<std::string>;

// A pool that came to a gateway or left it.
struct Move {
  std::string pool;
  std::string gateway;
};

class Placement {
 public:
  // After Load.
  void Rebuild(const FleetView& view);
  // After each Apply, with what it returned. A pool that was changed and stays where it is does not
  // move.
  std::vector<Move> Update(const FleetView& view, const std::vector<Changed>& changed);

  // Both until the placement changes.
  NameRange GatewaysOf(const std::string& pool) const;
  NameRange PoolsOn(const std::string& gateway) const;
  // The tenant has a pool there.
  bool HasTenant(const std::string& gateway, const std::string& tenant) const;
  // Gateways that the pool would be on if it were like this.
  Names Select(const FleetView& view, const types::v1::GatewaySelector& selector) const;
  // Pools that would be on the gateway if it were like this.
  Names SelectedBy(const FleetView& view, const types::v1::Gateway& gateway) const;
  // What the gateway must always grant: each tenant that has a pool there counts with what is
  // committed to it, or to its pools together if that is more, as in the gateway itself.
  Amounts CommittedOn(const std::string& gateway) const;
  // The part of it that is one tenant's ("tenants/T").
  Amounts ClaimOn(const std::string& gateway, const std::string& tenant) const;
  // What the tenant's pools have committed there.
  Amounts CommittedOn(const std::string& gateway, const std::string& tenant) const;
  // Of a tenant's pools on all gateways together, and on each that it has a pool on.
  Amounts CommittedBy(const std::string& tenant) const;
  std::map<std::string, Amounts> CommittedByHost(const std::string& tenant) const;

 private:
  struct Placed {
    Ids keys;
    Ids gateways;
    Amounts committed;
    uint32_t tenant = 0;
  };
  // A tenant's part of a gateway.
  struct Share {
    uint32_t tenant = 0;
    uint32_t pools = 0;
  };
  struct Host {
    Ids keys;
    Ids pools;
    Amounts committed;
    std::vector<Share> shares;  // by tenant
  };
  struct Tenant {
    Amounts own;  // committed to the tenant itself, wherever it has a pool
    Amounts committed;
    Ids gateways;
    size_t pools = 0;  // wherever they are, or nowhere
  };
  // Who belongs to a key. A pool and a gateway can only belong together if they have one in common:
  // "*", the gateway's name, a label.
  struct Key {
    Ids pools;
    Ids gateways;
  };

  void SetTenant(const FleetView& view, const std::string& name);
  void SetPool(const FleetView& view, const std::string& name, std::vector<Move>& moves);
  void SetGateway(const FleetView& view, const std::string& name, std::vector<Move>& moves);
  void RemovePool(uint32_t pool);
  uint32_t AddTenant(const FleetView& view, const std::string& name);
  void Place(uint32_t pool, uint32_t gateway);
  void Displace(uint32_t pool, uint32_t gateway);
  // The pools of a tenant on a gateway commit `now` where they committed `before`; `pools` more are
  // there, or fewer.
  void Change(uint32_t tenant, uint32_t gateway, int pools, const Amounts& before,
              const Amounts& now);
  // Exchanges the keys of a pool or gateway; members: &Key::pools or &Key::gateways.
  void SetKeys(uint32_t id, const std::vector<std::string>& names, Ids Key::*members, Ids& keys);
  Ids SelectIds(const FleetView& view, const types::v1::GatewaySelector& selector) const;
  Ids SelectedIds(const FleetView& view, const types::v1::Gateway& gateway) const;
  const Key* FindKey(const std::string& name) const;
  const Share* FindShare(uint32_t gateway, uint32_t tenant) const;
  const Amounts& CommittedIn(uint32_t gateway, uint32_t tenant) const;

  NameTable key_names_;
  NameTable pool_names_;
  NameTable gateway_names_;
  NameTable tenant_names_;  // of pools; a tenant without one is of no interest
  // By the numbers of the tables.
  std::vector<Key> keys_;
  std::vector<Placed> pools_;
  std::vector<Host> gateways_;
  std::vector<Tenant> tenants_;
  // What a tenant's pools commit on a gateway, where that is anything: (gateway, tenant).
  std::map<std::pair<uint32_t, uint32_t>, Amounts> committed_;
};

}  // namespace rocegw::controllers
