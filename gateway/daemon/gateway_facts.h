// SPDX-License-Identifier: Apache-2.0
// Facts about the daemon for an examination of the host. Pure.
#pragma once

#include <string>

#include "gateway/daemon/config.h"
#include "gateway/doctor/facts.h"
#include "gateway/service/identity.h"
#include "gateway/session/state/state_rows.h"

namespace rocegw::daemon {

// The snapshot has sessions and pools, and queue pairs unless a worker hangs.
doctor::GatewayFacts FactsOf(const Config& config, const service::GatewayIdentity& identity,
                             const session::StateSnapshot& snapshot);

}  // namespace rocegw::daemon
