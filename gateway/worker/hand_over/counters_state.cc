// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/hand_over/counters_state.h"

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gateway/hand_over/state_stream.h"

namespace rocegw::worker {
namespace {

using metrics::Counter;
using metrics::DropReason;
using metrics::WorkerCounters;

constexpr uint32_t kMostCounters = 4096;
constexpr uint8_t kLongestName = 127;

// Calls each(name, counter) for all counters.
template <typename F>
void ForEach(WorkerCounters& counters, F each) {
#define ROCEGW_COUNTER(name, unit, help)                      \
  static_assert(sizeof(#name " " #unit) - 1 <= kLongestName); \
  each(std::string_view(#name " " #unit), counters.name##_##unit);
#include "gateway/metrics/counters.def"
#undef ROCEGW_COUNTER
#define ROCEGW_DROP(name, side, sender, page, help)         \
  static_assert(sizeof("drop " #name) - 1 <= kLongestName); \
  each(std::string_view("drop " #name), counters.drops[static_cast<size_t>(DropReason::k_##name)]);
#include "gateway/metrics/drop_reasons.def"
#undef ROCEGW_DROP
}

void Write(hand_over::StateStream& state, WorkerCounters& counters) {
  uint32_t count = 0;
  ForEach(counters, [&](std::string_view, const Counter& one) { count += one.Read() != 0; });
  state.Count(count, kMostCounters);
  ForEach(counters, [&](std::string_view name, const Counter& one) {
    if (one.Read() == 0 || count == 0) return;
    --count;
    std::array<uint8_t, kLongestName> bytes{};
    std::memcpy(bytes.data(), name.data(), name.size());
    state.Carry(static_cast<uint8_t>(name.size()));
    state.Bytes(std::span(bytes).first(name.size()));
    state.Carry(one.Read());
  });
}

}  // namespace

void HandOver(hand_over::StateStream& state, WorkerCounters& counters) {
  if (!state.reading()) return Write(state, counters);
  std::unordered_map<std::string_view, uint64_t> found;
  std::vector<std::array<char, kLongestName>> names(state.Count(0, kMostCounters));
  for (auto& name : names) {
    const uint8_t length = state.Carry(uint8_t{0}, kLongestName);
    state.Bytes(std::span(reinterpret_cast<uint8_t*>(name.data()), length));
    found[std::string_view(name.data(), length)] = state.Carry(uint64_t{0});
  }
  if (!state.ok()) return;
  ForEach(counters, [&](std::string_view name, Counter& one) {
    if (const auto value = found.find(name); value != found.end()) one.Add(value->second);
  });
}

}  // namespace rocegw::worker
