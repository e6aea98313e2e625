// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/object_status.h"

#include <algorithm>
#include <map>

namespace rocegw::controllers {
namespace {

enum class Stand { kBehind, kApplied, kRejected };

const types::v1::Rejection* RejectionOf(const types::v1::GatewayState& state,
                                        const std::string& object) {
  const auto found = std::ranges::find(state.rejections(), object, &types::v1::Rejection::object);
  return found == state.rejections().end() ? nullptr : &*found;
}

// `changed`: newest revision of the gateway's view of the object.
Stand StandOn(const Known<types::v1::Gateway>& gateway, const std::string& object,
              store::Revision changed) {
  const types::v1::GatewayState& state = gateway.object.status();
  // A report on an older version does not count. A change of the gateway's own object may have
  // placed the pool there; a change without effect on the gateway is never reported.
  const bool reported =
      state.applied_revision() >= changed && (state.applied_revision() >= gateway.intent_revision ||
                                              state.applied_revision() >= state.desired_revision());
  if (!reported) return Stand::kBehind;
  return RejectionOf(state, object) == nullptr ? Stand::kApplied : Stand::kRejected;
}

template <typename Status>
void AddRejection(const std::string& gateway, const types::v1::Rejection& rejection,
                  Status& status) {
  if (status.rejections_size() == kMostRejections) return;
  types::v1::GatewayRejection& told = *status.add_rejections();
  told.set_gateway(gateway);
  told.set_object(rejection.object());
  told.set_reason(rejection.reason());
  told.set_message(rejection.message());
}

}  // namespace

types::v1::PoolStatus PoolStatusOf(const FleetView& view, const Placement& placement,
                                   const std::string& pool) {
  types::v1::PoolStatus status;
  const auto known = view.pools.find(pool);
  if (known == view.pools.end()) return status;
  uint32_t selected = 0;
  uint32_t applied = 0;
  uint32_t rejecting = 0;
  for (const std::string& name : placement.GatewaysOf(pool)) {
    const auto gateway = view.gateways.find(name);
    if (gateway == view.gateways.end()) continue;
    ++selected;
    const Stand stand = StandOn(gateway->second, pool, known->second.intent_revision);
    if (stand == Stand::kApplied) ++applied;
    if (stand != Stand::kRejected) continue;
    ++rejecting;
    AddRejection(name, *RejectionOf(gateway->second.object.status(), pool), status);
  }
  status.set_gateways_selected(selected);
  status.set_gateways_applied(applied);
  status.set_gateways_rejecting(rejecting);
  return status;
}

types::v1::TenantStatus TenantStatusOf(const FleetView& view, const Placement& placement,
                                       const std::string& tenant) {
  types::v1::TenantStatus status;
  const auto known = view.tenants.find(tenant);
  if (known == view.tenants.end()) return status;
  // The worst state of its pools there.
  std::map<std::string, Stand> stands;
  const auto note = [&](const std::string& gateway, const std::string& object,
                        store::Revision changed) {
    const auto host = view.gateways.find(gateway);
    if (host == view.gateways.end()) return;
    const Stand stand = StandOn(host->second, object, changed);
    if (stand == Stand::kRejected)
      AddRejection(gateway, *RejectionOf(host->second.object.status(), object), status);
    const auto at = stands.try_emplace(gateway, stand).first;
    if (stand == Stand::kRejected || at->second == Stand::kApplied) at->second = stand;
  };
  const std::string prefix = tenant + "/pools/";
  uint32_t pools = 0;
  for (auto pool = view.pools.lower_bound(prefix);
       pool != view.pools.end() && pool->first.starts_with(prefix); ++pool) {
    ++pools;
    for (const std::string& gateway : placement.GatewaysOf(pool->first)) {
      if (!stands.contains(gateway)) note(gateway, tenant, known->second.intent_revision);
      note(gateway, pool->first, pool->second.intent_revision);
    }
  }
  const std::string short_name = model::NameOf(tenant).id;
  uint64_t leased = 0;
  for (const auto& [name, donor] : view.donors) {
    for (const types::v1::DonorUse& use : donor.object.status().tenants())
      leased += use.tenant() == short_name ? use.bytes() : 0;
  }
  status.set_leased_bytes(leased);
  status.set_pools(pools);
  status.set_gateways_selected(static_cast<uint32_t>(stands.size()));
  const auto count = [&](Stand stand) {
    return static_cast<uint32_t>(
        std::ranges::count_if(stands, [&](const auto& one) { return one.second == stand; }));
  };
  status.set_gateways_applied(count(Stand::kApplied));
  status.set_gateways_rejecting(count(Stand::kRejected));
  return status;
}

}  // namespace rocegw::controllers
