// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/presence.h"

#include <optional>

#include "controlplane/model/stored.h"

namespace rocegw::sync {

Presence::Presence(store::Store& store, const std::string& id,
                   const controlplane::v1::ReplicaRecord& record)
    : election_(store,
                {.key = std::string(model::kReplicaPrefix) + id,
                 .candidate = record.SerializeAsString(),
                 .time_to_live = kTimeToLive},
                [this](const std::optional<store::Term>& term) {
                  const std::lock_guard lock(mutex_);
                  said_ = said_ || term.has_value();
                  changed_.notify_all();
                }) {}

bool Presence::AwaitSaid(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return said_; });
}

}  // namespace rocegw::sync
