// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/object_kind.h"

#include <algorithm>
#include <set>

#include "controlplane/controllers/amounts.h"
#include "controlplane/controllers/capacity.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/stored.h"

namespace rocegw::api {
namespace {

using controllers::Amounts;
using model::Collection;
using model::ResourceName;

constexpr size_t kHoldersNamed = 5;
// Agents create donors: bounds what one host can store.
constexpr size_t kMostDonorsOfGateway = 16;
// Each donor gets a share of each of them in its orders (gateway/far/fleet/announcement.h).
constexpr size_t kMostTenantsWithShares = 256;

std::string CapacityGuard() { return std::string(model::kGuardPrefix) + "capacity"; }
// Guard that is written by every transaction that starts or ends a reference to the object.
std::string ReferenceGuard(const std::string& name) {
  return std::string(model::kGuardPrefix) + "references/" + name;
}

std::string GatewayOf(const ResourceName& donor) { return "gateways/" + donor.parent; }

template <typename Call>
void ForDonorsOf(const sync::Fleet& fleet, const std::string& gateway, const Call& call) {
  const std::string prefix = gateway + "/donors/";
  for (auto donor = fleet.view.donors.lower_bound(prefix);
       donor != fleet.view.donors.end() && donor->first.starts_with(prefix); ++donor) {
    call(donor->first);
  }
}

bool SaysAnything(const types::v1::Limits& limits) { return limits.ByteSizeLong() != 0; }

void Append(std::vector<model::Violation> more, std::vector<model::Violation>& violations) {
  for (model::Violation& violation : more) violations.push_back(std::move(violation));
}

}  // namespace

Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Tenant& tenant) {
  Relations relations;
  const types::v1::Quota& quota = tenant.spec().quota();
  const bool commits = SaysAnything(quota.committed());
  const bool bounds = SaysAnything(quota.peak()) || SaysAnything(tenant.spec().fleet_cap());
  if (commits || bounds) relations.guards.push_back(CapacityGuard());
  // A pool that commits nothing can extend the tenant's commitment to more gateways.
  if (commits) relations.guards.push_back(ReferenceGuard(tenant.name()));
  if (tenant.spec().has_donated_bytes()) {
    const auto& limited = fleet.view.tenants_with_shares;
    if (!limited.contains(tenant.name())) {
      relations.guards.push_back(std::string(model::kGuardPrefix) + "donated");
      if (limited.size() >= kMostTenantsWithShares) {
        relations.violations.push_back(
            {"tenant.spec.donated_bytes",
             std::to_string(limited.size()) + " tenants have it already, the most that may"});
      }
    }
  }
  Append(controllers::CheckTenant(fleet.view, fleet.placement, tenant), relations.violations);
  return relations;
}

Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Pool& pool) {
  Relations relations;
  const std::string tenant = model::NameOf(pool.name()).Tenant();
  relations.needs.push_back(tenant);
  const auto old = fleet.view.pools.find(pool.name());
  const bool is_new = old == fleet.view.pools.end();
  const bool moves = is_new || model::Serialized(pool.spec().gateways()) !=
                                   model::Serialized(old->second.object.spec().gateways());
  if (moves) relations.guards.push_back(ReferenceGuard(tenant));
  const std::string& policy = pool.spec().cc_policy();
  if (!policy.empty()) relations.needs.push_back(policy);
  const std::string before = is_new ? std::string() : old->second.object.spec().cc_policy();
  if (policy != before) {
    for (const std::string& name : {policy, before}) {
      if (!name.empty()) relations.guards.push_back(ReferenceGuard(name));
    }
  }
  const auto owner = fleet.view.tenants.find(tenant);
  const bool brings = moves && owner != fleet.view.tenants.end() &&
                      SaysAnything(owner->second.object.spec().quota().committed());
  if (brings || SaysAnything(pool.spec().quota().committed()))
    relations.guards.push_back(CapacityGuard());
  Append(controllers::CheckPool(fleet.view, fleet.placement, pool), relations.violations);
  return relations;
}

Relations RelationsOf(const sync::Fleet&, const types::v1::CcPolicy&) { return {}; }

Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Gateway& gateway) {
  Relations relations;
  relations.guards.push_back(CapacityGuard());
  Append(controllers::CheckGateway(fleet.view, fleet.placement, gateway), relations.violations);
  return relations;
}

Relations RelationsOf(const sync::Fleet&, const types::v1::RoleBinding& binding) {
  Relations relations;
  const types::v1::Role role = binding.spec().role();
  if (!binding.spec().tenant().empty()) {
    relations.needs.push_back(binding.spec().tenant());
    relations.guards.push_back(ReferenceGuard(binding.spec().tenant()));
  }
  if (role == types::v1::NODE) {
    relations.violations.push_back(
        {"role_binding.spec.role", "NODE comes with a node's certificate and cannot be bound"});
  }
  if (role == types::v1::TENANT_ADMIN && binding.spec().tenant().empty()) {
    relations.violations.push_back({"role_binding.spec.tenant", "must be given for TENANT_ADMIN"});
  }
  const bool of_fleet = role != types::v1::TENANT_ADMIN && role != types::v1::VIEWER;
  if (of_fleet && !binding.spec().tenant().empty()) {
    relations.violations.push_back(
        {"role_binding.spec.tenant", "can only be given for TENANT_ADMIN and VIEWER"});
  }
  return relations;
}

Relations RelationsOf(const sync::Fleet& fleet, const types::v1::Donor& donor) {
  Relations relations;
  const std::string gateway = GatewayOf(model::NameOf(donor.name()));
  relations.needs.push_back(gateway);
  const auto old = fleet.view.donors.find(donor.name());
  std::set<std::string> before;
  if (old == fleet.view.donors.end()) {
    relations.guards.push_back(ReferenceGuard(gateway));
    size_t donors = 0;
    ForDonorsOf(fleet, gateway, [&](const std::string&) { ++donors; });
    if (donors >= kMostDonorsOfGateway) {
      relations.violations.push_back(
          {"donor.name", gateway + " has " + std::to_string(donors) +
                             " donors already, the most that a host may have; delete those that "
                             "are absent for good"});
    }
  } else {
    for (const auto& quota : old->second.object.spec().quotas()) before.insert(quota.tenant());
  }
  std::set<std::string> after;
  for (const types::v1::DonorQuota& quota : donor.spec().quotas()) {
    if (!after.insert(quota.tenant()).second)
      relations.violations.push_back({"donor.spec.quotas", quota.tenant() + " has two quotas"});
    relations.needs.push_back(quota.tenant());
  }
  // A tenant must not be deleted between the check and the write.
  for (const std::string& tenant : after) {
    if (!before.contains(tenant)) relations.guards.push_back(ReferenceGuard(tenant));
  }
  for (const std::string& tenant : before) {
    if (!after.contains(tenant)) relations.guards.push_back(ReferenceGuard(tenant));
  }
  return relations;
}

Holders HoldersOf(const sync::Fleet& fleet, const ResourceName& name) {
  Holders holders;
  const std::string text = name.Text();
  const auto add = [&](const std::string& holder) {
    if (holders.names.size() < kHoldersNamed) holders.names.push_back(holder);
  };
  if (name.collection == Collection::kTenants) {
    holders.guards.push_back(ReferenceGuard(text));
    const std::string prefix = text + "/pools/";
    for (auto pool = fleet.view.pools.lower_bound(prefix);
         pool != fleet.view.pools.end() && pool->first.starts_with(prefix); ++pool) {
      add(pool->first);
    }
    // A later tenant of the same name must not inherit role bindings.
    for (const auto& [binding_name, binding] : fleet.view.role_bindings) {
      if (binding.object.spec().tenant() == text) add(binding_name);
    }
    for (const auto& [donor_name, donor] : fleet.view.donors) {
      const auto& quotas = donor.object.spec().quotas();
      if (std::ranges::count(quotas, text, &types::v1::DonorQuota::tenant) != 0) add(donor_name);
    }
  } else if (name.collection == Collection::kGateways) {
    // A later host of the same name must not inherit donors.
    holders.guards.push_back(ReferenceGuard(text));
    ForDonorsOf(fleet, text, add);
  } else if (name.collection == Collection::kCcPolicies) {
    holders.guards.push_back(ReferenceGuard(text));
    for (const auto& [pool_name, pool] : fleet.view.pools) {
      if (pool.object.spec().cc_policy() == text) add(pool_name);
    }
  }
  return holders;
}

}  // namespace rocegw::api
