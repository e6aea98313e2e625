// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/gateway_state.h"

#include <string>

namespace rocegw::take_over {
namespace {

constexpr uint32_t kMostCounts = 1u << 16;
constexpr uint32_t kLongestName = 255;

}  // namespace

void GatewayState::HandOver(hand_over::StateStream& state) {
  const hand_over::StateRecord record(state, hand_over::StateKind::kGateway);
  auto& [since_ns, drains, past, counts_by_name] = *this;
  state(since_ns, drains);
  past.HandOver(state);
  if (record.version() < 2) return;
  const uint32_t count = state.Count(counts_by_name.size(), kMostCounts);
  auto at = counts_by_name.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    std::string name = state.reading() ? std::string() : at->first;
    name.resize(state.Count(name.size(), kLongestName));
    state.Bytes({reinterpret_cast<uint8_t*>(name.data()), name.size()});
    const uint64_t value = state.Carry(state.reading() ? 0 : (at++)->second);
    if (state.reading()) counts_by_name[name] = value;
  }
}

}  // namespace rocegw::take_over
