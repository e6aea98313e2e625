// SPDX-License-Identifier: Apache-2.0
// Which of the addresses that a gateway names are its own. Peers are told of them, so a host that
// names another one's must not get what is meant for that: who had an address first keeps it for as
// long as its object is there and it does not say otherwise. Pure; any thread.
#pragma once

#include <google/protobuf/repeated_ptr_field.h>

#include <string>
#include <vector>

#include "controlplane/controllers/fleet_view.h"

namespace rocegw::controllers {

// More are of no use to peers.
inline constexpr size_t kMostAddresses = 64;

enum class AddressRefusal { kMalformed, kTaken, kTooMany };
inline constexpr size_t kAddressRefusals = 3;

struct RefusedAddress {
  std::string address;  // as it was named, shortened
  AddressRefusal why = AddressRefusal::kMalformed;
  std::string owner;  // kTaken: "gateways/G"
  bool operator==(const RefusedAddress&) const = default;
};

struct AddressClaims {
  std::vector<std::string> granted;  // canonical, each once
  std::vector<RefusedAddress> refused;
};

AddressClaims JudgeAddresses(const FleetView& view, const std::string& gateway,
                             const google::protobuf::RepeatedPtrField<std::string>& named);

// For people, with what to do.
std::string ToText(const RefusedAddress& refused);

}  // namespace rocegw::controllers
