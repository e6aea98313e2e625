// SPDX-License-Identifier: Apache-2.0
// Histogram of durations with steps 1, 2, 5 from a microsecond to half a second, for Prometheus.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::metrics {

// Plain value of one thread; copies are snapshots.
class DurationHistogram {
 public:
  // Upper bounds in nanoseconds; longer durations are in no bucket.
  static constexpr std::array<int64_t, 18> kBounds = {
      1'000,      2'000,      5'000,      10'000,      20'000,      50'000,
      100'000,    200'000,    500'000,    1'000'000,   2'000'000,   5'000'000,
      10'000'000, 20'000'000, 50'000'000, 100'000'000, 200'000'000, 500'000'000};

  DurationHistogram() = default;
  // Restores a histogram from its values.
  DurationHistogram(const std::array<uint64_t, kBounds.size()>& counts, uint64_t count,
                    int64_t sum_ns)
      : counts_(counts), count_(count), sum_ns_(sum_ns) {}

  void Add(Duration duration) {
    const auto* const bound = std::ranges::lower_bound(kBounds, duration.ns);
    if (bound != kBounds.end()) ++counts_[static_cast<size_t>(bound - kBounds.begin())];
    ++count_;
    sum_ns_ += duration.ns;
  }

  void Add(const DurationHistogram& other) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    sum_ns_ += other.sum_ns_;
  }

  // Counts per bucket, not cumulative.
  const std::array<uint64_t, kBounds.size()>& counts() const { return counts_; }
  uint64_t count() const { return count_; }
  int64_t sum_ns() const { return sum_ns_; }

 private:
  friend class SharedDurationHistogram;

  std::array<uint64_t, kBounds.size()> counts_{};
  uint64_t count_ = 0;
  int64_t sum_ns_ = 0;
};

// Histogram to which several threads add at times, and which any thread reads.
class SharedDurationHistogram {
 public:
  // Adds the total first, so that no reader finds more in the buckets than in total.
  void Add(const DurationHistogram& some) {
    sum_ns_.fetch_add(some.sum_ns_, std::memory_order_relaxed);
    count_.fetch_add(some.count_, std::memory_order_relaxed);
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (some.counts_[i] != 0) counts_[i].fetch_add(some.counts_[i], std::memory_order_release);
    }
  }
  DurationHistogram Read() const {
    DurationHistogram all;
    for (size_t i = 0; i < counts_.size(); ++i)
      all.counts_[i] = counts_[i].load(std::memory_order_acquire);
    all.count_ = count_.load(std::memory_order_relaxed);
    all.sum_ns_ = sum_ns_.load(std::memory_order_relaxed);
    return all;
  }

 private:
  std::array<std::atomic<uint64_t>, DurationHistogram::kBounds.size()> counts_{};
  std::atomic<uint64_t> count_{0};
  std::atomic<int64_t> sum_ns_{0};
};

}  // namespace rocegw::metrics
