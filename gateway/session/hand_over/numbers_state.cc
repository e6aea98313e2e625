// SPDX-License-Identifier: Apache-2.0
// State of QPNs and keys for a gateway that takes over (gateway/hand_over/state_stream.h): numbers
// that rest go on resting, and peers cannot guess later ones from earlier ones.
#include <algorithm>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/objects/xrc_domains.h"
#include "gateway/session/reserve/key_generator.h"
#include "gateway/session/reserve/qpn_allocator.h"

namespace rocegw::session {
namespace {

constexpr uint32_t kNumbersOfBucket = uint32_t{1} << port::kBucketShift;
constexpr uint32_t kMostResting = 1u << 24;

}  // namespace

void QpnPermutation::HandOver(hand_over::StateStream& state) {
  auto& [keys] = *this;
  for (uint64_t& key : keys) state(key);
}

void QpnAllocator::HandOver(hand_over::StateStream& state) {
  auto& [rest, permutations, buckets, buckets_of_worker, turn, longer_rest, sweep_at, in_use] =
      *this;
  // Configuration, and what begins anywhere.
  (void)rest, (void)buckets_of_worker, (void)turn, (void)sweep_at;
  (void)in_use;  // KeepOnly
  for (QpnPermutation& permutation : permutations) permutation.HandOver(state);
  for (auto& [next_index, resting] : buckets) {
    next_index = state.Carry(next_index, kNumbersOfBucket);
    const uint32_t count = state.Count(resting.size(), kNumbersOfBucket);
    if (state.reading()) resting.assign(count, {});
    for (auto& [index, until] : resting) {
      state(index, until);
      state.Require(index < next_index, "resting number was never assigned");
    }
  }
  const uint32_t count = state.Count(longer_rest.size(), kMostResting);
  auto at = longer_rest.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Qpn qpn = state.reading() ? Qpn{} : at->first;
    TimePoint until = state.reading() ? TimePoint{} : (at++)->second;
    state(qpn, until);
    if (state.reading()) longer_rest[qpn] = until;
  }
}

void QpnAllocator::KeepOnly(const std::vector<Qpn>& used, TimePoint now) {
  std::vector<std::vector<bool>> known(buckets_.size());
  for (size_t b = 0; b < buckets_.size(); ++b) {
    known[b].resize(buckets_[b].next_index);
    for (const Resting& one : buckets_[b].resting) known[b][one.index] = true;
  }
  for (const Qpn qpn : used) {
    const uint8_t bucket = port::BucketOf(qpn);
    const uint32_t index = permutations_[bucket].Invert(qpn.value & (kNumbersOfBucket - 1));
    if (index < known[bucket].size()) known[bucket][index] = true;
  }
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (uint32_t index = 0; index < known[b].size(); ++index)
      if (!known[b][index]) buckets_[b].resting.push_back({index, now + rest_});
  }
  in_use_ = used.size();
}

void KeyGenerator::HandOver(hand_over::StateStream& state) {
  auto& [random, taken, resting, windows, resting_windows] = *this;
  (void)random;
  (void)taken;  // keys in use are adopted with their regions
  (void)windows;
  const uint32_t keys = state.Count(resting.size(), kResting);
  if (state.reading()) resting.assign(keys, {});
  for (MemoryKey& key : resting) {
    state(key);
    if (state.reading()) taken.insert(key);
  }
  const uint32_t names = state.Count(resting_windows.size(), kResting);
  if (state.reading()) resting_windows.assign(names, 0);
  for (uint32_t& name : resting_windows) {
    state(name);
    if (state.reading()) windows.insert(name);
  }
}

void XrcDomains::HandOver(hand_over::StateStream& state) {
  auto& [domains, by_file, numbers, next_id, next_number] = *this;
  // Sessions have them.
  (void)domains, (void)by_file, (void)numbers;
  next_id = state.Carry(next_id, ~kDomain);
  next_number = state.Carry(next_number, kHighestNumber);
  state.Require(next_number != 0, "number of a shared receive queue is impossible");
}

}  // namespace rocegw::session
