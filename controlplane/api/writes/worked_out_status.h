// SPDX-License-Identifier: Apache-2.0
// Derived part of an object's status, computed when it is read: state of pools and tenants on their
// gateways, and their usage. Other kinds have none. Any thread, within FleetFollower::Read or a
// listener.
#pragma once

#include <type_traits>

#include "controlplane/controllers/object_status.h"
#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/usage_book.h"

namespace rocegw::api {

// Adds to the stored status. `usage`: nullptr if not available.
template <typename Object>
void WorkOutStatus(const sync::Fleet& fleet, const sync::UsageBook* usage, Object& object) {
  constexpr bool kPool = std::is_same_v<Object, types::v1::Pool>;
  constexpr bool kTenant = std::is_same_v<Object, types::v1::Tenant>;
  if constexpr (kPool || kTenant) {
    const auto put = [&](auto status, const sync::Usage& used) {
      if (used.gateways != 0) *status.mutable_used() = used.totals;
      if constexpr (kPool) {
        if (used.ready.wanted() != 0) *status.mutable_ready() = used.ready;
      }
      status.set_gateways_reporting(used.gateways);
      // A status without any gateway is left out.
      if (status.ByteSizeLong() != 0) object.mutable_status()->MergeFrom(status);
    };
    const std::string& name = object.name();
    if constexpr (kPool) {
      put(controllers::PoolStatusOf(fleet.view, fleet.placement, name),
          usage == nullptr ? sync::Usage() : usage->OfPool(name));
    } else {
      put(controllers::TenantStatusOf(fleet.view, fleet.placement, name),
          usage == nullptr ? sync::Usage() : usage->OfTenant(name));
    }
  }
}

}  // namespace rocegw::api
