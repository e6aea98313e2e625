// SPDX-License-Identifier: Apache-2.0
// Bounds how often something is done for strangers: `rate` per second on average, `burst` at once.
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
    // paid_until_ runs behind now by what has been saved up, at most the depth.
    paid_until_ = std::max(paid_until_, now - depth_);
    if (paid_until_ + cost_ > now) return false;
    paid_until_ = paid_until_ + cost_;
    return true;
  }

 private:
  Duration cost_;
  Duration depth_;
  TimePoint paid_until_{INT64_MIN / 2};
};

}  // namespace rocegw
