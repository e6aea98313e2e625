// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/history.h"

namespace rocegw::daemon {
namespace {

constexpr uint32_t kMostText = 256;
constexpr uint32_t kMostRefusals = 1024;

}  // namespace

void TakeOverHistory::Add(Duration blackout, uint64_t descriptors, const std::string& from_version,
                          int64_t wall_ns) {
  ++count_;
  blackouts_.Add(blackout);
  last_blackout_ = blackout;
  last_ns_ = wall_ns;
  descriptors_ += descriptors;
  from_version_ = from_version.substr(0, kMostText);
}

void TakeOverHistory::AddRefusal(take_over::Refusal refusal) {
  if (const auto index = take_over::IndexOf(refusal)) ++refusals_[*index];
}

session::TakeOverRow TakeOverHistory::Row() const {
  session::TakeOverRow row;
  row.count = count_;
  row.blackouts = blackouts_;
  row.last_blackout = last_blackout_;
  row.last_ns = last_ns_;
  row.descriptors = descriptors_;
  row.from_version = from_version_;
  for (size_t i = 0; i < refusals_.size(); ++i)
    row.refusals.emplace_back(take_over::kRefusals[i].label, refusals_[i]);
  return row;
}

void TakeOverHistory::HandOver(hand_over::StateStream& state) {
  const hand_over::StateRecord record(state, hand_over::StateKind::kTakeOvers);
  auto& [count, blackouts, last_blackout, last_ns, descriptors, from_version, refusals] = *this;
  state(count, last_blackout, last_ns, descriptors);
  auto counts = blackouts.counts();
  uint64_t samples = blackouts.count();
  int64_t sum_ns = blackouts.sum_ns();
  for (uint64_t& bucket : counts) state(bucket);
  state(samples, sum_ns);
  blackouts = metrics::DurationHistogram(counts, samples, sum_ns);
  from_version.resize(state.Count(from_version.size(), kMostText));
  state.Bytes({reinterpret_cast<uint8_t*>(from_version.data()), from_version.size()});
  // By number, since another version has other reasons.
  const uint32_t kinds = state.Count(refusals.size(), kMostRefusals);
  for (uint32_t i = 0; i < kinds && state.ok(); ++i) {
    uint16_t number = 0;
    uint64_t times = 0;
    if (!state.reading()) {
      number = static_cast<uint16_t>(take_over::kRefusals[i].refusal);
      times = refusals[i];
    }
    state(number, times);
    const auto index = take_over::IndexOf(static_cast<take_over::Refusal>(number));
    if (state.reading() && index) refusals[*index] = times;
  }
}

}  // namespace rocegw::daemon
