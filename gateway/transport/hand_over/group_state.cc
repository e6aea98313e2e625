// SPDX-License-Identifier: Apache-2.0
// State of endpoint groups for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <utility>

#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/endpoint/endpoint_group.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that the numbers of endpoints and of their messages bound otherwise.
constexpr uint32_t kMostMembers = 1u << 18;
constexpr uint32_t kMostOrphans = 1u << 20;

}  // namespace

void EndpointGroup::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kEndpointGroup);
  auto& [group_config, members, turn, orphans] = *this;
  (void)group_config;
  // Round-robin dispatch depends on the order of the members.
  const uint32_t count = state.Count(members.size(), kMostMembers);
  state.Require(count == members.size(), "endpoint group has other members");
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Qpn number = members[i]->context().config.qpn;
    state(number);
    const auto rest = members.begin() + static_cast<std::ptrdiff_t>(i);
    const auto found = std::find_if(rest, members.end(), [&](const EndpointQueuePair* member) {
      return member->context().config.qpn == number;
    });
    if (state.Require(found != members.end(), "endpoint group has other members"))
      std::swap(*rest, *found);
  }
  // Taken modulo the number of members before each use.
  turn = state.Carry(static_cast<uint64_t>(turn));
  state.Vector(orphans, kMostOrphans, [&](Orphan& orphan) {
    auto& [message, until] = orphan;
    auto& [name_carrier, source, number, attempt] = message;
    auto* carrier = const_cast<flow::Carrier*>(name_carrier);
    flow::HandOver(state, names, carrier);
    name_carrier = carrier;
    state(source, number, attempt, until);
    state.Require(carrier != nullptr, "message of a former member has no channel");
  });
}

}  // namespace rocegw::transport
