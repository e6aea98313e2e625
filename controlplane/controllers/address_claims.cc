// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/address_claims.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "controlplane/model/plain_text.h"
#include "proto/rules/formats.h"

namespace rocegw::controllers {
namespace {

// If two gateways claimed an address at the same time at different controllers, the older object
// owns it: all controllers come to the same result.
bool Precedes(const FleetView& view, const std::string& one, const std::string& other) {
  const auto age = [&](const std::string& name) {
    return google::protobuf::util::TimeUtil::TimestampToNanoseconds(
        view.gateways.at(name).object.meta().create_time());
  };
  return std::tuple(age(one), one) < std::tuple(age(other), other);
}

// Returns the gateway that owns the address instead of `gateway`; nullopt: none.
std::optional<std::string> OwnerBefore(const FleetView& view, const std::string& gateway,
                                       const std::string& address) {
  const auto at = view.gateways_at.find(address);
  if (at == view.gateways_at.end()) return std::nullopt;
  const bool has_it = at->second.contains(gateway);
  for (const std::string& other : at->second) {
    if (other == gateway) continue;
    if (!has_it || Precedes(view, other, gateway)) return other;
  }
  return std::nullopt;
}

}  // namespace

AddressClaims JudgeAddresses(const FleetView& view, const std::string& gateway,
                             const google::protobuf::RepeatedPtrField<std::string>& named) {
  constexpr size_t kShown = 64;
  AddressClaims claims;
  const auto refuse = [&](const std::string& address, AddressRefusal why, std::string owner = {}) {
    claims.refused.push_back({model::PlainText(address, kShown), why, std::move(owner)});
  };
  for (const std::string& text : named) {
    if (claims.refused.size() == kMostAddresses) break;
    const std::optional<std::string> address = rules::CanonicalIp(text);
    if (!address.has_value() || !rules::IsHostIp(*address)) {
      refuse(text, AddressRefusal::kMalformed);
    } else if (std::ranges::count(claims.granted, *address) != 0) {
      continue;
    } else if (claims.granted.size() == kMostAddresses) {
      refuse(text, AddressRefusal::kTooMany);
      break;
    } else if (auto owner = OwnerBefore(view, gateway, *address); owner.has_value()) {
      refuse(*address, AddressRefusal::kTaken, std::move(*owner));
    } else {
      claims.granted.push_back(*address);
    }
  }
  return claims;
}

std::string ToText(const RefusedAddress& refused) {
  switch (refused.why) {
    case AddressRefusal::kTaken:
      return refused.address + " is an address of " + refused.owner +
             ": if that host does not have it any more, let its agent say so or delete it";
    case AddressRefusal::kTooMany:
      return refused.address + " is one of more than " + std::to_string(kMostAddresses) +
             " addresses: peers are told of so many";
    case AddressRefusal::kMalformed:
      break;
  }
  return "'" + refused.address + "' is no address that a host can have";
}

}  // namespace rocegw::controllers
