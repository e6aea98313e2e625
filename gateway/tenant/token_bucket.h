// SPDX-License-Identifier: Apache-2.0
// So many tokens per second on average, a second's worth at once. When the rate changes, a bucket
// that was full stays full, one that was empty stays empty. Plain value, its owner's thread; the
// clock is the caller's.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

class TokenBucket {
 public:
  // Full at first. kUnlimited: always grants. 0: never.
  explicit TokenBucket(uint64_t rate) : rate_(rate), tokens_(static_cast<double>(rate)) {}

  void SetRate(uint64_t rate, TimePoint now) {
    Fill(now);
    const double full = rate_ == 0 ? 1 : tokens_ / static_cast<double>(rate_);
    rate_ = rate;
    tokens_ = full * static_cast<double>(rate);
  }

  bool Has(TimePoint now) {
    Fill(now);
    return rate_ == kUnlimited || tokens_ >= 1;
  }
  // Has said yes.
  void Take() {
    if (rate_ != kUnlimited) tokens_ -= 1;
  }
  uint64_t rate() const { return rate_; }

 private:
  void Fill(TimePoint now) {
    const auto rate = static_cast<double>(rate_);
    if (now > at_) {
      tokens_ = std::min(rate, tokens_ + static_cast<double>((now - at_).ns) * 1e-9 * rate);
      at_ = now;
    }
  }

  uint64_t rate_;
  double tokens_;
  TimePoint at_;
};

}  // namespace rocegw::tenant
