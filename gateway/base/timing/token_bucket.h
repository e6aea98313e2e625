// SPDX-License-Identifier: Apache-2.0
// Rate limit for events that strangers cause: `rate` per second on average, `burst` at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw {

class TokenBucket {
 public:
  TokenBucket(uint32_t rate, uint32_t burst)
      : cost_(Seconds(1) / std::max<uint32_t>(rate, 1)),
        depth_(cost_ * std::max<uint32_t>(burst, 1)) {}

  bool Take(TimePoint now) {
    // paid_until_ lies behind now by the saved budget, at most depth_.
    paid_until_ = std::max(paid_until_, now - depth_);
    if (paid_until_ + cost_ > now) return false;
    paid_until_ = paid_until_ + cost_;
    return true;
  }

  // Takes a token in any case. Returns how long the caller must wait before it uses the token.
  Duration Reserve(TimePoint now) {
    paid_until_ = std::max(paid_until_, now - depth_) + cost_;
    return std::max(paid_until_ - now, Duration{0});
  }

  // Undoes a Take that returned true, or a Reserve.
  void GiveBack() { paid_until_ = paid_until_ - cost_; }

  // Writes or reads the state (hand_over::StateStream).
  template <typename Stream>
  void HandOver(Stream& state) {
    auto& [cost, depth, paid_until] = *this;
    (void)cost, (void)depth;  // configuration
    state(paid_until);
  }

 private:
  Duration cost_;
  Duration depth_;
  TimePoint paid_until_{INT64_MIN / 2};
};

}  // namespace rocegw
