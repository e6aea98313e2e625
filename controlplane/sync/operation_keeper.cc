// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/operation_keeper.h"

#include <algorithm>

#include "controlplane/controllers/operations.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::sync {

OperationKeeper::OperationKeeper(FleetFollower& follower, StatusWriter& statuses)
    : follower_(follower), statuses_(statuses) {
  listener_ = follower_.Listen(
      [this](const Fleet& fleet, const FleetChange& change) { Look(fleet, change); });
  follower_.Read([this](const Fleet& fleet) { Look(fleet, {.everything = true}); });
}

OperationKeeper::~OperationKeeper() { follower_.Unlisten(listener_); }

void OperationKeeper::Look(const Fleet& fleet, const FleetChange& change) {
  const bool matters =
      change.everything || std::ranges::any_of(change.changed, [](const auto& changed) {
        return changed.name.collection == model::Collection::kGateways ||
               (changed.name.collection == model::Collection::kOperations && changed.intent);
      });
  if (!matters) return;
  for (const auto& [name, known] : fleet.view.operations) {
    if (known.object.status().done()) continue;
    types::v1::OperationStatus stand = controllers::StandOf(fleet.view, known.object);
    if (model::Serialized(stand) == model::Serialized(known.object.status())) continue;
    if (stand.done()) {
      *stand.mutable_done_time() = model::Now();
    }
    types::v1::Operation status;
    *status.mutable_status() = std::move(stand);
    statuses_.Set(model::NameOf(name), model::Serialized(status));
  }
}

}  // namespace rocegw::sync
