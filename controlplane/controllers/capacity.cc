// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/capacity.h"

#include <string>

#include "proto/rules/relations.h"

namespace rocegw::controllers {
namespace {

using model::Violation;
using types::v1::Gateway;
using types::v1::Pool;
using types::v1::Tenant;

// The operator's setting, else that of the gateway's configuration file.
Amounts CapacityOf(const Gateway& gateway) {
  return Amounts(gateway.spec().capacity()).Or(Amounts(gateway.status().capacity()));
}

Amounts CommittedTo(const FleetView& view, const std::string& tenant) {
  const auto found = view.tenants.find(tenant);
  return found == view.tenants.end() ? Amounts()
                                     : Amounts(found->second.object.spec().quota().committed());
}

Amounts PeakOf(const FleetView& view, const std::string& tenant) {
  const auto found = view.tenants.find(tenant);
  return found == view.tenants.end() ? Amounts()
                                     : Amounts(found->second.object.spec().quota().peak());
}

// Adds a violation for each kind whose sum exceeds the bound. `whose` names the bound.
void Compare(const Amounts& sum, const Amounts& bound, const std::string& field,
             const std::string& whose, std::vector<Violation>& violations) {
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (!bound.has(kind) || sum[kind] <= bound[kind]) continue;
    violations.push_back({field, "brings the committed " + std::string(Amounts::Name(kind)) +
                                     " to " + std::to_string(sum[kind]) + "; " + whose + " is " +
                                     std::to_string(bound[kind])});
  }
}

// Returns the sums of kinds that grow, so that lowering a sum that does not fit is always allowed.
Amounts Grown(const Amounts& sum, const Amounts& now, const Amounts& before) {
  Amounts grown;
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (now[kind] <= before[kind]) continue;
    grown.Set(kind, sum[kind]);
  }
  return grown;
}

}  // namespace

std::vector<Violation> CheckPool(const FleetView& view, const Placement& placement,
                                 const Pool& pool) {
  constexpr char kField[] = "pool.spec.quota.committed";
  std::vector<Violation> violations;
  const std::string tenant = model::NameOf(pool.name()).Tenant();
  const Amounts now(rules::CommittedOf(pool.spec()));
  const auto old = view.pools.find(pool.name());
  const Amounts before =
      old == view.pools.end() ? Amounts() : Amounts(rules::CommittedOf(old->second.object.spec()));
  const Amounts own_quota = CommittedTo(view, tenant);
  const NameRange were = placement.GatewaysOf(pool.name());
  const Names gateways = placement.Select(view, pool.spec().gateways());
  for (const std::string& name : gateways) {
    const bool was = were.contains(name);
    Amounts pools = placement.CommittedOn(name, tenant);
    if (was) pools.Subtract(before);
    pools.Add(now);
    const Amounts claimed = placement.ClaimOn(name, tenant);
    const Amounts claim = own_quota.Max(pools);
    Amounts all = placement.CommittedOn(name);
    all.Subtract(claimed);
    all.Add(claim);
    Compare(Grown(all, claim, claimed), CapacityOf(view.gateways.at(name).object), kField,
            "the capacity of " + name, violations);
    std::string peak = "on ";
    peak.append(name).append(" the peak of ").append(tenant);
    Compare(Grown(pools, now, was ? before : Amounts()), PeakOf(view, tenant), kField, peak,
            violations);
  }
  const auto owner = view.tenants.find(tenant);
  if (owner != view.tenants.end() && owner->second.object.spec().has_fleet_cap()) {
    Amounts own;
    own.Add(now, gateways.size());
    Amounts own_before;
    own_before.Add(before, were.size());
    Amounts sum = placement.CommittedBy(tenant);
    sum.Subtract(own_before);
    sum.Add(own);
    Compare(Grown(sum, own, own_before), Amounts(owner->second.object.spec().fleet_cap()), kField,
            "the fleet cap of " + tenant, violations);
  }
  if (pool.spec().ready_qps() != 0) {
    for (Violation& violation : violations)
      violation.text += " (what ready_qps keeps ready counts as committed)";
  }
  return violations;
}

std::vector<Violation> CheckTenant(const FleetView& view, const Placement& placement,
                                   const Tenant& tenant) {
  std::vector<Violation> violations;
  const auto check = [&](const Amounts& committed, const Amounts& bound, const std::string& field,
                         const std::string& where) {
    for (size_t kind = 0; kind < kAmountKinds; ++kind) {
      if (!bound.has(kind) || committed[kind] <= bound[kind]) continue;
      violations.push_back({field + "." + std::string(Amounts::Name(kind)),
                            "is less than its pools have committed " + where + ", which is " +
                                std::to_string(committed[kind])});
    }
  };
  const Amounts peak(tenant.spec().quota().peak());
  const Amounts own(tenant.spec().quota().committed());
  for (const auto& [gateway, committed] : placement.CommittedByHost(tenant.name())) {
    check(committed, peak, "tenant.spec.quota.peak", "on " + gateway);
    const Amounts claimed = placement.ClaimOn(gateway, tenant.name());
    const Amounts claim = own.Max(committed);
    Amounts all = placement.CommittedOn(gateway);
    all.Subtract(claimed);
    all.Add(claim);
    Compare(Grown(all, claim, claimed), CapacityOf(view.gateways.at(gateway).object),
            "tenant.spec.quota.committed", "the capacity of " + gateway, violations);
  }
  check(placement.CommittedBy(tenant.name()), Amounts(tenant.spec().fleet_cap()),
        "tenant.spec.fleet_cap", "in the fleet");
  return violations;
}

std::vector<Violation> CheckGateway(const FleetView& view, const Placement& placement,
                                    const Gateway& gateway) {
  std::vector<Violation> violations;
  std::map<std::string, Amounts> by_tenant;
  for (const std::string& name : placement.SelectedBy(view, gateway)) {
    by_tenant[model::NameOf(name).Tenant()].Add(
        Amounts(rules::CommittedOf(view.pools.at(name).object.spec())));
  }
  Amounts all;
  for (const auto& [tenant, committed] : by_tenant)
    all.Add(CommittedTo(view, tenant).Max(committed));
  Compare(all, CapacityOf(gateway), "gateway", "the capacity of " + gateway.name(), violations);
  for (const auto& [tenant, committed] : by_tenant) {
    Compare(committed, PeakOf(view, tenant), "gateway",
            "on " + gateway.name() + " the peak of " + tenant, violations);
  }
  return violations;
}

}  // namespace rocegw::controllers
