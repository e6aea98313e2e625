// SPDX-License-Identifier: Apache-2.0
// So much per second on average, `burst` seconds' worth at once: a virtual schedule (GCRA, ITU-T
// I.371). What passes moves the schedule on; the gate is open while the schedule is not ahead of
// the clock. When the rate changes, what was full stays full and what was spent stays spent.
// Any thread asks and charges, the control thread sets; the clock is the caller's.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

class RateGate {
 public:
  // Full at first. kUnlimited: always open. 0: never.
  RateGate(uint64_t rate, Duration burst) : burst_(burst.ns * kTicks), rate_(rate) {}

  void SetRate(uint64_t rate) { rate_.store(rate, std::memory_order_relaxed); }
  uint64_t rate() const { return rate_.load(std::memory_order_relaxed); }

  // When `amount` may pass: not later than `now` means at once. With 0, something may, however
  // much: what is charged beyond the rate keeps the gate shut until it is paid for.
  TimePoint Opens(TimePoint now, uint64_t amount = 0) const {
    const uint64_t rate = this->rate();
    if (rate == kUnlimited) return now;
    if (rate == 0) return kNever;
    return {CeilNs(From(now) + Cost(amount, rate))};
  }
  void Charge(TimePoint now, uint64_t amount) {
    const uint64_t rate = this->rate();
    if (rate == kUnlimited || rate == 0) return;
    const int64_t cost = Cost(amount, rate);
    int64_t seen = spent_until_.load(std::memory_order_relaxed);
    while (!spent_until_.compare_exchange_weak(seen, std::max(seen, Earliest(now)) + cost,
                                               std::memory_order_relaxed)) {
    }
  }

 private:
  // Of a nanosecond: a packet at a terabyte per second still costs some.
  static constexpr int64_t kTicks = 64;
  // Whatever is charged at once takes at most a minute.
  static constexpr int64_t kMostTicks = 60 * int64_t{1000000000} * kTicks;

  static int64_t CeilNs(int64_t ticks) { return ticks >= 0 ? (ticks + kTicks - 1) / kTicks : 0; }
  static int64_t Cost(uint64_t amount, uint64_t rate) {
    const double ticks = static_cast<double>(amount) * 1e9 * kTicks / static_cast<double>(rate);
    return static_cast<int64_t>(std::min(ticks, static_cast<double>(kMostTicks)));
  }
  int64_t Earliest(TimePoint now) const { return now.ns * kTicks - burst_; }
  int64_t From(TimePoint now) const {
    return std::max(spent_until_.load(std::memory_order_relaxed), Earliest(now));
  }

  const int64_t burst_;
  std::atomic<uint64_t> rate_;
  std::atomic<int64_t> spent_until_{INT64_MIN / 2};
};

}  // namespace rocegw::tenant
