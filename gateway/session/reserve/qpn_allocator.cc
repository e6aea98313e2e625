// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/reserve/qpn_allocator.h"

#include <algorithm>

namespace rocegw::session {
namespace {

constexpr uint32_t kIndexBits = port::kBucketShift;
constexpr uint32_t kIndices = uint32_t{1} << kIndexBits;
constexpr uint32_t kHalfBits = kIndexBits / 2;
constexpr uint32_t kHalfMask = (uint32_t{1} << kHalfBits) - 1;

// Mixes a half with a round key (the finalizer of splitmix64).
uint32_t Round(uint32_t half, uint64_t key) {
  uint64_t x = key + half;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return static_cast<uint32_t>(x >> 40) & kHalfMask;
}

bool MayBeGiven(Qpn qpn) { return qpn != kInvalidQpn && qpn != kGsiQpn && qpn != kMulticastQpn; }

}  // namespace

QpnPermutation::QpnPermutation(Random& random) {
  for (uint64_t& key : keys_) key = random.Next64();
}

uint32_t QpnPermutation::Apply(uint32_t index) const {
  uint32_t left = index >> kHalfBits;
  uint32_t right = index & kHalfMask;
  for (int i = 0; i < kRounds; ++i) {
    const uint32_t next = left ^ Round(right, keys_[i]);
    left = right;
    right = next;
  }
  return left << kHalfBits | right;
}

uint32_t QpnPermutation::Invert(uint32_t number) const {
  uint32_t left = number >> kHalfBits;
  uint32_t right = number & kHalfMask;
  for (int i = kRounds - 1; i >= 0; --i) {
    const uint32_t before = right ^ Round(left, keys_[i]);
    right = left;
    left = before;
  }
  return left << kHalfBits | right;
}

QpnAllocator::QpnAllocator(const port::SteeringTable& steering, size_t workers, Random& random,
                           Duration rest)
    : rest_(rest), buckets_(port::kBuckets), buckets_of_worker_(workers), turn_(workers) {
  permutations_.reserve(port::kBuckets);
  for (size_t b = 0; b < port::kBuckets; ++b) {
    permutations_.emplace_back(random);
    const WorkerIndex worker = steering.WorkerOf(static_cast<uint8_t>(b));
    if (worker < workers) buckets_of_worker_[worker].push_back(static_cast<uint8_t>(b));
  }
  for (size_t w = 0; w < workers; ++w) turn_[w] = random.Next();
}

std::optional<Qpn> QpnAllocator::TakeFrom(uint8_t bucket, TimePoint now) {
  Bucket& b = buckets_[bucket];
  while (true) {
    uint32_t index = 0;
    const bool rested = !b.resting.empty() && b.resting.front().until <= now;
    if (b.next_index < kIndices && !(rested && b.resting.size() >= kManyResting)) {
      index = b.next_index++;
    } else if (rested) {
      index = b.resting.front().index;
      b.resting.pop_front();
    } else {
      return std::nullopt;
    }
    const Qpn qpn{static_cast<uint32_t>(bucket) << kIndexBits | permutations_[bucket].Apply(index)};
    if (!MayBeGiven(qpn)) continue;
    const auto longer = longer_rest_.find(qpn);
    if (longer == longer_rest_.end()) return qpn;
    const TimePoint until = longer->second;
    longer_rest_.erase(longer);
    if (until <= now) return qpn;
    b.resting.push_back({index, until});
  }
}

std::optional<Qpn> QpnAllocator::Take(WorkerIndex worker, TimePoint now) {
  const auto& buckets = buckets_of_worker_[worker];
  for (size_t i = 0; i < buckets.size(); ++i) {
    const uint8_t bucket = buckets[turn_[worker]++ % buckets.size()];
    if (const auto qpn = TakeFrom(bucket, now)) {
      ++in_use_;
      return qpn;
    }
  }
  return std::nullopt;
}

void QpnAllocator::RestUntil(Qpn qpn, TimePoint until, TimePoint now) {
  // Kept apart from the queue of resting numbers: it is checked when the number is next in the
  // queue.
  TimePoint& known = longer_rest_[qpn];
  known = std::max(known, until);
  if (longer_rest_.size() < sweep_longer_rest_at_) return;
  std::erase_if(longer_rest_, [now](const auto& entry) { return entry.second <= now; });
  sweep_longer_rest_at_ = std::max<size_t>(1024, 2 * longer_rest_.size());
}

void QpnAllocator::Give(Qpn qpn, TimePoint now) {
  const uint8_t bucket = port::BucketOf(qpn);
  buckets_[bucket].resting.push_back(
      {permutations_[bucket].Invert(qpn.value & (kIndices - 1)), now + rest_});
  --in_use_;
}

}  // namespace rocegw::session
