// SPDX-License-Identifier: Apache-2.0
// Donors and their gateways as tests of the controller write them.
#pragma once

#include <string>

#include "tests/support/fleet_fixture.h"

namespace rocegw::testing {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;

// Returns a donor that is approved and serves.
inline types::v1::Donor DonorWith(const std::string& gateway, const std::string& id,
                                  uint64_t donated, uint64_t leased = 0) {
  types::v1::Donor donor;
  donor.set_name("gateways/" + gateway + "/donors/" + id);
  donor.mutable_spec()->set_approved(true);
  types::v1::DonorState& state = *donor.mutable_status();
  state.set_health(types::v1::DonorState::SERVING);
  state.set_port(7475);
  state.set_donated_bytes(donated);
  state.set_leased_bytes(leased);
  return donor;
}

// Returns a gateway whose agent is connected.
inline types::v1::Gateway ConnectedGateway(const std::string& id, const std::string& address,
                                           const std::string& zone = {}) {
  types::v1::Gateway gateway = GatewayWith(id, zone);
  gateway.mutable_status()->set_connected(true);
  gateway.mutable_status()->add_addresses(address);
  return gateway;
}

}  // namespace rocegw::testing
