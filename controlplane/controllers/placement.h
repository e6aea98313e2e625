// SPDX-License-Identifier: Apache-2.0
// Placement of pools on gateways, and committed amounts there. Updated with each change of its
// view, in time that depends on the change and not on the size of the fleet, and with a few bytes
// per pool on a gateway: there may be millions. One thread.
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

// Arrival or removal of a pool at a gateway.
struct Move {
  std::string pool;
  std::string gateway;
};

class Placement {
 public:
  // Call after Load.
  void Rebuild(const FleetView& view);
  // Call after each Apply, with its result. A changed pool that stays where it is does not move.
  std::vector<Move> Update(const FleetView& view, const std::vector<Changed>& changed);

  // Both valid until the placement changes.
  NameRange GatewaysOf(const std::string& pool) const;
  NameRange PoolsOn(const std::string& gateway) const;
  // Returns true if the tenant has a pool there.
  bool HasTenant(const std::string& gateway, const std::string& tenant) const;
  // Returns the gateways for a pool with this selector.
  Names Select(const FleetView& view, const types::v1::GatewaySelector& selector) const;
  // Returns the pools for a gateway like this.
  Names SelectedBy(const FleetView& view, const types::v1::Gateway& gateway) const;
  // Returns what the gateway must always grant: each tenant with a pool there counts with its own
  // committed amount, or its pools' sum if that is more, as in the gateway itself.
  Amounts CommittedOn(const std::string& gateway) const;
  // Returns one tenant's ("tenants/T") part of it.
  Amounts ClaimOn(const std::string& gateway, const std::string& tenant) const;
  // Returns the amount committed to the tenant's pools there.
  Amounts CommittedOn(const std::string& gateway, const std::string& tenant) const;
  // Amounts of a tenant's pools over all gateways, and per gateway.
  Amounts CommittedBy(const std::string& tenant) const;
  std::map<std::string, Amounts> CommittedByHost(const std::string& tenant) const;

 private:
  struct Placed {
    Ids keys;
    Ids gateways;
    Amounts committed;
    uint32_t tenant = 0;
  };
  // Tenant's part of a gateway.
  struct Share {
    uint32_t tenant = 0;
    uint32_t pools = 0;
  };
  struct Host {
    Ids keys;
    Ids pools;
    Amounts committed;
    std::vector<Share> shares;  // sorted by tenant
  };
  struct Tenant {
    Amounts own;  // committed to the tenant itself, on each of its gateways
    Amounts committed;
    Ids gateways;
    size_t pools = 0;  // placed or not
  };
  // Members of a key. A pool and a gateway can match only if they have a key in common: "*", the
  // gateway's name, or a label.
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
  // Changes the amount that a tenant's pools commit on a gateway from `before` to `now`, and their
  // number by `pools`.
  void Change(uint32_t tenant, uint32_t gateway, int pools, const Amounts& before,
              const Amounts& now);
  // Replaces the keys of a pool or gateway; `members`: &Key::pools or &Key::gateways.
  void SetKeys(uint32_t id, const std::vector<std::string>& names, Ids Key::*members, Ids& keys);
  Ids SelectIds(const FleetView& view, const types::v1::GatewaySelector& selector) const;
  Ids SelectedIds(const FleetView& view, const types::v1::Gateway& gateway) const;
  const Key* FindKey(const std::string& name) const;
  const Share* FindShare(uint32_t gateway, uint32_t tenant) const;
  const Amounts& CommittedIn(uint32_t gateway, uint32_t tenant) const;

  NameTable key_names_;
  NameTable pool_names_;
  NameTable gateway_names_;
  NameTable tenant_names_;  // tenants of pools; others do not matter
  // Indexed by the numbers of the tables.
  std::vector<Key> keys_;
  std::vector<Placed> pools_;
  std::vector<Host> gateways_;
  std::vector<Tenant> tenants_;
  // Non-zero amounts that a tenant's pools commit on a gateway: (gateway, tenant).
  std::map<std::pair<uint32_t, uint32_t>, Amounts> committed_;
};

}  // namespace rocegw::controllers
