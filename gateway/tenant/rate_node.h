// SPDX-License-Identifier: Apache-2.0
// The quota tree for one rate, such as new connections or bytes per second: the gateway, below it
// tenants, below them pools. Each level divides its rate into what is committed, which nobody else
// can use up, and the rest, which those below share as they come. Owner: whoever keeps the
// configuration; rates are set by the control thread, Ask and Charge belong to any thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/rate_gate.h"

namespace rocegw::tenant {

class RateNode {
 public:
  // The parent outlives its children. A new node has nothing committed and no limit of its own.
  // What was not used is kept for `burst`.
  explicit RateNode(RateNode* parent, Duration burst = Seconds(1))
      : parent_(parent), promised_(0, burst), shared_(kUnlimited, burst) {}
  ~RateNode() { SetRates(0, kUnlimited); }
  RateNode(const RateNode&) = delete;
  RateNode& operator=(const RateNode&) = delete;

  // A peak below what is committed counts as that much.
  void SetRates(uint64_t committed, uint64_t peak);

  struct Answer {
    const RateNode* closed = nullptr;  // whose limit is reached; nullptr: it may pass
    TimePoint opens;                   // when closed
    RateNode* last = nullptr;          // highest level that is charged
    bool promised = false;             // out of what is committed to a level
  };
  // May `amount` pass (0: anything)? Of pools only.
  Answer Ask(TimePoint now, uint64_t amount);
  // What has passed after that answer.
  void Charge(const Answer& answer, TimePoint now, uint64_t amount);

  // nullptr: one more was granted. Else the node whose limit is reached, and nothing has changed.
  [[nodiscard]] const RateNode* Take(TimePoint now);

  uint64_t limit() const { return limit_; }
  bool limited() const { return shared_.rate() != kUnlimited; }

 private:
  uint64_t Claim() const { return claimed_ > committed_ ? claimed_ : committed_; }
  void SetClaimed(uint64_t claimed);
  void Divide();

  RateNode* const parent_;
  uint64_t committed_ = 0;
  uint64_t limit_ = kUnlimited;
  uint64_t claimed_ = 0;  // committed to those below
  RateGate promised_;     // committed, beyond what those below were promised one by one
  RateGate shared_;       // up to the limit, beyond the same
};

}  // namespace rocegw::tenant
