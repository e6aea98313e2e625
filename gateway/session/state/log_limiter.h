// SPDX-License-Identifier: Apache-2.0
// Rate limit for log lines that clients cause: a program that attaches and detaches all the time
// must not fill the log. The next line that passes states how many were left out. Owner: session
// server, control thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "gateway/base/time.h"

namespace rocegw::session {

enum class Severity : uint8_t { kDebug, kInfo, kWarning };
using Log = std::function<void(Severity severity, const std::string& line)>;

class LogLimiter {
 public:
  static constexpr double kPerSecond = 10;
  static constexpr double kBurst = 100;

  explicit LogLimiter(Log log) : log_(std::move(log)) {}

  void Say(Severity severity, const std::string& line, TimePoint now) {
    if (!log_) return;
    const double seconds = static_cast<double>((now - at_).ns) * 1e-9;
    tokens_ = std::min(kBurst, tokens_ + std::max(0.0, seconds) * kPerSecond);
    at_ = now;
    if (tokens_ < 1) {
      ++left_out_;
      return;
    }
    tokens_ -= 1;
    if (left_out_ != 0) {
      log_(Severity::kInfo,
           std::to_string(std::exchange(left_out_, 0)) + " lines about sessions left out");
    }
    log_(severity, line);
  }

 private:
  Log log_;
  double tokens_ = kBurst;
  TimePoint at_;
  uint64_t left_out_ = 0;
};

}  // namespace rocegw::session
