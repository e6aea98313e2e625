// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/nodes/fleet_keys.h"

#include "controlplane/identity/enrollment.h"
#include "controlplane/identity/fleet_key_rotation.h"

namespace rocegw::api {

std::optional<identity::FleetKeySchedule::Keys> FleetKeysFor(
    const sync::Fleet& fleet, const identity::FleetKeySchedule& schedule,
    const std::optional<identity::PeerCertificate>& certificate, identity::TimePoint now) {
  if (certificate.has_value()) {
    const auto record = fleet.certificates.find(identity::CertificateKey(certificate->path));
    if (record != fleet.certificates.end() &&
        identity::IsRevoked(record->second, certificate->serial))
      return std::nullopt;
  }
  return schedule.At(now, identity::StartsOfKeys(fleet.fleet_keys));
}

}  // namespace rocegw::api
