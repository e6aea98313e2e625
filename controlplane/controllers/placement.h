// SPDX-License-Identifier: Apache-2.0
// Which pools are on which gateways, and what they have committed there. Kept up to date with each
// change of the view it belongs to, in a time that depends on what changed and not on the size of
// the fleet. One thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "controlplane/controllers/amounts.h"
#include "controlplane/controllers/fleet_view.h"

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

  const Names& GatewaysOf(const std::string& pool) const;
  const Names& PoolsOn(const std::string& gateway) const;
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
    Names keys;
    Names gateways;
    Amounts committed;
    std::string tenant;
  };
  struct Host {
    Names keys;
    Names pools;
    Amounts committed;
  };
  struct Share {
    Amounts committed;
    size_t pools = 0;
  };
  struct Tenant {
    Amounts own;  // committed to the tenant itself, wherever it has a pool
    Amounts committed;
    std::map<std::string, Share> by_gateway;
  };

  void SetTenant(const FleetView& view, const std::string& name);
  void SetPool(const FleetView& view, const std::string& name, std::vector<Move>& moves);
  void SetGateway(const FleetView& view, const std::string& name, std::vector<Move>& moves);
  void Place(const FleetView& view, const std::string& pool, const std::string& gateway);
  void Displace(const std::string& pool, const std::string& gateway);

  // A pool and a gateway can only belong together if they have a key in common: "*", the gateway's
  // name, a label.
  std::map<std::string, Names> pools_by_key_;
  std::map<std::string, Names> gateways_by_key_;
  std::map<std::string, Placed> pools_;
  std::map<std::string, Host> gateways_;
  std::map<std::string, Tenant> tenants_;  // those that have a pool somewhere
};

}  // namespace rocegw::controllers
