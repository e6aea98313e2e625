// SPDX-License-Identifier: Apache-2.0
// Ownership of the addresses that gateways report. Peers send to these addresses, so a host that
// reports another's address must not get its traffic: the first gateway owns an address while its
// object exists and keeps reporting it. Pure; any thread.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"

namespace rocegw::controllers {

// Limit of addresses; peers need no more.
inline constexpr size_t kMostAddresses = 64;

enum class AddressRefusal { kMalformed, kTaken, kTooMany };
inline constexpr size_t kAddressRefusals = 3;

struct RefusedAddress {
  std::string address;  // as reported, shortened
  AddressRefusal why = AddressRefusal::kMalformed;
  std::string owner;  // kTaken: "gateways/G"
  bool operator==(const RefusedAddress&) const = default;
};

struct AddressClaims {
  std::vector<std::string> granted;  // canonical, without duplicates
  std::vector<RefusedAddress> refused;
};

AddressClaims JudgeAddresses(const FleetView& view, const std::string& gateway,
                             const google::protobuf::RepeatedPtrField<std::string>& named);

// Returns a text for display, with a remedy.
std::string ToText(const RefusedAddress& refused);

}  // namespace rocegw::controllers
