// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/history.h"

namespace rocegw::take_over {
namespace {

constexpr uint32_t kMostVersion = 256;
constexpr uint32_t kMostRefusals = 1024;
// Bound of sums, so that additions do not overflow: a hundred years.
constexpr Duration kMostTime = Seconds(3'153'600'000);

}  // namespace

void History::Add(Duration blackout, uint64_t descriptors, const std::string& from_version,
                  int64_t wall_ns) {
  ++count_;
  blackouts_.Add(blackout);
  last_blackout_ = blackout;
  last_ns_ = wall_ns;
  descriptors_ += descriptors;
  from_version_ = from_version.substr(0, kMostVersion);
}

void History::AddRefusal(Refusal refusal) {
  if (const auto index = IndexOf(refusal)) ++refusals_[*index];
}

void History::HandOver(hand_over::StateStream& state) {
  const hand_over::StateRecord record(state, hand_over::StateKind::kTakeOvers);
  auto& [count, blackouts, last_blackout, last_ns, descriptors, from_version, refusals] = *this;
  state(count, last_blackout, last_ns, descriptors);
  auto counts = blackouts.counts();
  uint64_t samples = blackouts.count();
  int64_t sum_ns = blackouts.sum_ns();
  for (uint64_t& bucket : counts) state(bucket);
  state(samples, sum_ns);
  if (!state.Require(sum_ns >= 0 && sum_ns <= kMostTime.ns && last_blackout.ns >= 0 &&
                         last_blackout.ns <= kMostTime.ns,
                     "pauses of take-overs out of range"))
    return;
  blackouts = metrics::DurationHistogram(counts, samples, sum_ns);
  from_version.resize(state.Count(from_version.size(), kMostVersion));
  state.Bytes({reinterpret_cast<uint8_t*>(from_version.data()), from_version.size()});
  // By number, since another version has other reasons.
  const uint32_t kinds = state.Count(refusals.size(), kMostRefusals);
  for (uint32_t i = 0; i < kinds && state.ok(); ++i) {
    uint16_t number = 0;
    uint64_t times = 0;
    if (!state.reading()) {
      number = static_cast<uint16_t>(kRefusals[i].refusal);
      times = refusals[i];
    }
    state(number, times);
    const auto index = IndexOf(static_cast<Refusal>(number));
    if (state.reading() && index) refusals[*index] = times;
  }
}

}  // namespace rocegw::take_over
