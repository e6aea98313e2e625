// SPDX-License-Identifier: Apache-2.0
// State of endpoint groups for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <utility>

#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/transport/endpoint/endpoint_group.h"
#include "gateway/transport/endpoint/orphan_messages.h"

namespace rocegw::transport {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists in states of older gateways, which had no others.
constexpr uint32_t kMostMembersEver = 1u << 18;
constexpr uint32_t kMostOrphansEver = 1u << 20;

}  // namespace

void EndpointGroup::HandOver(StateStream& state, flow::CarrierNames& names) {
  const StateRecord record(state, StateKind::kEndpointGroup);
  auto& [group_config, members, turn, orphans] = *this;
  (void)group_config;
  // Round-robin dispatch depends on the order of the members.
  const uint32_t count = state.Count(members.size(), kMostMembersEver);
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
  orphans.HandOver(state, names);
}

void OrphanMessages::HandOver(StateStream& state, flow::CarrierNames& carriers) {
  auto& [by_age, names] = *this;
  (void)names;  // follow from by_age
  const uint32_t count = state.Count(by_age.size(), kMostOrphansEver);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    auto [name, until] = state.reading() ? Orphan{} : by_age[i];
    auto& [name_carrier, source, number, attempt] = name;
    auto* carrier = const_cast<flow::Carrier*>(name_carrier);
    flow::HandOver(state, carriers, carrier);
    name_carrier = carrier;
    state(source, number, attempt, until);
    if (state.Require(carrier != nullptr, "message of a former member has no channel") &&
        state.reading())
      AddUntil(name, until);
  }
}

}  // namespace rocegw::transport
