// SPDX-License-Identifier: Apache-2.0
// Counters of one worker. Only that worker writes (plain increments, relaxed stores); any thread
// may read. One block per worker, cache-line aligned, so that counting never shares a line between
// cores.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "gateway/metrics/drop_reason.h"

namespace rocegw::metrics {

// A single-writer counter: the writer needs no atomic read-modify-write.
class Counter {
 public:
  void Add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t Read() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct alignas(64) WorkerCounters {
#define ROCEGW_COUNTER(name, unit, help) Counter name##_##unit;
#include "gateway/metrics/counters.def"
#undef ROCEGW_COUNTER
  std::array<Counter, kDropReasonCount> drops;

  void Drop(DropReason reason) {
    drops[static_cast<size_t>(reason)].Add();
    rx_dropped_packets.Add();
  }
  uint64_t DropCount(DropReason reason) const { return drops[static_cast<size_t>(reason)].Read(); }
};

struct CounterInfo {
  const char* name;  // e.g. "rx"
  const char* unit;  // e.g. "packets"
  const char* help;
  const Counter& (*get)(const WorkerCounters&);
};

// The list of counters.def, in its order.
std::span<const CounterInfo> AllCounters();

// What a counter is called outside: its name and its unit, which is not repeated when the name ends
// with it already.
std::string CounterName(const CounterInfo& info);

}  // namespace rocegw::metrics
