// SPDX-License-Identifier: Apache-2.0
// Keys of the fleet for one host. Pure; any thread.
#pragma once

#include <optional>

#include "controlplane/identity/fleet_key_schedule.h"
#include "controlplane/identity/revocations.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

// Returns the keys at the time; nullopt: the certificate is refused. The revocation of a host and
// the rotation of the keys because of it are one transaction, and both are read from one revision:
// no host gets the keys that shut it out.
std::optional<identity::FleetKeySchedule::Keys> FleetKeysFor(
    const sync::Fleet& fleet, const identity::FleetKeySchedule& schedule,
    const std::optional<identity::PeerCertificate>& certificate, identity::TimePoint now);

}  // namespace rocegw::api
