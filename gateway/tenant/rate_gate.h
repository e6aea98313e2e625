// SPDX-License-Identifier: Apache-2.0
// Rate limit with a burst of `burst` seconds, as a virtual schedule (GCRA, ITU-T I.371). Charges
// move the schedule on; the gate is open while the schedule is not ahead of the clock. A change of
// the rate keeps the used share of the burst. Any thread asks and charges, the control thread sets
// the rate; the caller passes the time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

class RateGate {
 public:
  // Creates a gate with a full burst. kUnlimited: always open. 0: never.
  RateGate(uint64_t rate, Duration burst) : burst_(burst.ns * kTicks), rate_(rate) {}

  void SetRate(uint64_t rate) { rate_.store(rate, std::memory_order_relaxed); }
  uint64_t rate() const { return rate_.load(std::memory_order_relaxed); }

  // Returns when `amount` may pass; at or before `now`: at once. With 0, returns when any amount
  // may pass: a charge beyond the rate then keeps the gate closed until it is paid off.
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
  // Ticks per nanosecond: a packet at a terabyte per second still has a cost.
  static constexpr int64_t kTicks = 64;
  // Limit of a single charge: one minute.
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
