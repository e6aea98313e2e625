// SPDX-License-Identifier: Apache-2.0
// Node of the quota tree for one rate, such as new connections or bytes per second: the gateway,
// tenants below it, pools below them. Each level divides its rate into the committed part, reserved
// for its owner, and the rest, shared first come, first served. The owner of the configuration
// creates nodes. The control thread sets rates; Ask and Charge are for any thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/tenant/rate_gate.h"

namespace rocegw::tenant {

class RateNode {
 public:
  // Creates a node without a committed rate and limits. The parent must outlive its children.
  // Unused rate accumulates for `burst`.
  explicit RateNode(RateNode* parent, Duration burst = Seconds(1))
      : parent_(parent), promised_(0, burst), shared_(kUnlimited, burst) {}
  ~RateNode() { SetRates(0, kUnlimited); }
  RateNode(const RateNode&) = delete;
  RateNode& operator=(const RateNode&) = delete;

  // Sets the rates. A peak below the committed rate counts as that rate.
  void SetRates(uint64_t committed, uint64_t peak);

  struct Answer {
    const RateNode* closed = nullptr;  // node whose limit is reached; nullptr: may pass
    TimePoint opens;                   // time at which a closed node opens
    RateNode* last = nullptr;          // highest level that is charged
    bool promised = false;             // from the committed rate of a level
  };
  // Returns if `amount` may pass (0: any amount). For pools only.
  Answer Ask(TimePoint now, uint64_t amount);
  // Charges what passed after that answer.
  void Charge(const Answer& answer, TimePoint now, uint64_t amount);

  // Takes one event. Returns nullptr if granted, else the node whose limit is reached, and changes
  // nothing.
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
  uint64_t claimed_ = 0;  // sum committed to the children
  RateGate promised_;     // committed rate beyond the children's committed rates
  RateGate shared_;       // rate up to the limit, beyond the same
};

}  // namespace rocegw::tenant
