// SPDX-License-Identifier: Apache-2.0
// Time as values: nanoseconds of the monotonic clock. The protocol core never reads a clock; its
// callers pass a TimePoint.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace rocegw {

struct Duration {
  int64_t ns = 0;
  auto operator<=>(const Duration&) const = default;  // NOLINT(modernize-use-nullptr)
  constexpr Duration operator+(Duration o) const { return {ns + o.ns}; }
  constexpr Duration operator-(Duration o) const { return {ns - o.ns}; }
  constexpr Duration operator*(int64_t k) const { return {ns * k}; }
  constexpr Duration operator/(int64_t k) const { return {ns / k}; }
};

constexpr Duration Nanoseconds(int64_t n) { return {n}; }
constexpr Duration Microseconds(int64_t n) { return {n * 1000}; }
constexpr Duration Milliseconds(int64_t n) { return {n * 1000000}; }
constexpr Duration Seconds(int64_t n) { return {n * 1000000000}; }

struct TimePoint {
  int64_t ns = 0;
  auto operator<=>(const TimePoint&) const = default;  // NOLINT(modernize-use-nullptr)
  // Saturates: a sum beyond the range is kNever.
  constexpr TimePoint operator+(Duration d) const {
    int64_t sum = 0;
    if (__builtin_add_overflow(ns, d.ns, &sum)) {
      sum = d.ns > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    }
    return {sum};
  }
  constexpr TimePoint operator-(Duration d) const { return {ns - d.ns}; }
  constexpr Duration operator-(TimePoint o) const { return {ns - o.ns}; }
};

// Deadline that never comes.
inline constexpr TimePoint kNever{std::numeric_limits<int64_t>::max()};

constexpr TimePoint Earlier(TimePoint a, TimePoint b) { return a < b ? a : b; }

}  // namespace rocegw
