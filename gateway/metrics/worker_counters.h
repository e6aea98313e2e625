// SPDX-License-Identifier: Apache-2.0
// Counters of one worker. Only that worker writes (plain increments, relaxed stores); any thread
// may read. One block per worker, cache-line aligned, so that cores never share a line.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>

#include "gateway/metrics/drop_reason.h"

namespace rocegw::metrics {

// Single-writer counter: the writer needs no atomic read-modify-write.
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
  const char* name;  // such as "rx"
  const char* unit;  // such as "packets"
  const char* help;
  const Counter& (*get)(const WorkerCounters&);
};

// List of counters.def, in its order.
std::span<const CounterInfo> AllCounters();

// Returns a counter's public name: name and unit; the unit is not repeated if the name ends with
// it.
std::string CounterName(const CounterInfo& info);

}  // namespace rocegw::metrics
