// SPDX-License-Identifier: Apache-2.0
// The quota tree for one rate, such as new connections per second: the gateway, below it tenants,
// below them pools. Each level divides its rate into what is committed, which nobody else can use
// up, and the rest, which those below share as they come. Owner: whoever keeps the configuration;
// control thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/token_bucket.h"

namespace rocegw::tenant {

class RateNode {
 public:
  // The parent outlives its children. A new node has nothing committed and no limit of its own.
  explicit RateNode(RateNode* parent) : parent_(parent) {}
  ~RateNode() { SetRates(0, kUnlimited, at_); }
  RateNode(const RateNode&) = delete;
  RateNode& operator=(const RateNode&) = delete;

  // A peak below what is committed counts as that much.
  void SetRates(uint64_t committed, uint64_t peak, TimePoint now);

  // nullptr: granted. Else the node whose limit is reached, and nothing has changed. Of pools only.
  [[nodiscard]] const RateNode* Take(TimePoint now);

  uint64_t limit() const { return limit_; }

 private:
  uint64_t Claim() const { return claimed_ > committed_ ? claimed_ : committed_; }
  void SetClaimed(uint64_t claimed, TimePoint now);
  void Divide(TimePoint now);

  RateNode* const parent_;
  uint64_t committed_ = 0;
  uint64_t limit_ = kUnlimited;
  uint64_t claimed_ = 0;  // committed to those below
  TimePoint at_;
  TokenBucket promised_{0};         // committed, beyond what those below were promised one by one
  TokenBucket shared_{kUnlimited};  // up to the limit, beyond the same
};

}  // namespace rocegw::tenant
