// SPDX-License-Identifier: Apache-2.0
// The part of an object's status that is not stored but worked out when it is read: how pools and
// tenants stand on their gateways, and what they hold there. Other kinds have none. Any thread,
// within FleetFollower::Read or a listener.
#pragma once

#include <type_traits>

#include "controlplane/controllers/object_status.h"
#include "controlplane/sync/fleet_follower.h"
#include "controlplane/sync/usage_book.h"

namespace rocegw::api {

// Into what the store has of the status. usage: nullptr when nobody keeps it.
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
      // One without any gateway says nothing.
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
