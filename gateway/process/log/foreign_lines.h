// SPDX-License-Identifier: Apache-2.0
// Log lines of libraries that would otherwise write to standard error themselves, where a pipe that
// nothing reads would block their thread. The lines go through the daemon's log queue. Strangers
// can cause such lines, gRPC's for a failed handshake for example, so their rate is bounded.
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

#include "gateway/base/time.h"

namespace rocegw::process {

enum class ForeignLevel : uint8_t { kDebug, kInfo, kError };

class ForeignLines {
 public:
  static constexpr uint64_t kMostPerPeriod = 20;
  static constexpr Duration kPeriod = Seconds(10);

  // `library`: prefix of the lines.
  explicit ForeignLines(std::string library) : library_(std::move(library)) {}

  // Logs text that may lack the line's end. Any thread.
  void Log(ForeignLevel level, std::string_view text) { LogAt(level, text, Now()); }
  void LogAt(ForeignLevel level, std::string_view text, TimePoint now);

 private:
  static TimePoint Now();

  const std::string library_;
  std::mutex mutex_;  // guards the fields below
  TimePoint period_begin_;
  bool has_begun_ = false;
  uint64_t in_period_ = 0;
  uint64_t left_out_ = 0;
};

// Returns a stream whose lines are logged as errors of this library. It is never closed. nullptr:
// no memory.
std::FILE* ForeignStream(const std::string& library);

}  // namespace rocegw::process
