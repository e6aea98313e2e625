// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/rate_node.h"

#include <algorithm>

namespace rocegw::tenant {

void RateNode::SetRates(uint64_t committed, uint64_t peak) {
  const uint64_t before = Claim();
  committed_ = committed;
  limit_ = std::max(peak, committed);
  Divide();
  if (parent_ != nullptr && Claim() != before)
    parent_->SetClaimed(parent_->claimed_ + Claim() - before);
}

void RateNode::SetClaimed(uint64_t claimed) {
  const uint64_t before = Claim();
  claimed_ = claimed;
  Divide();
  if (parent_ != nullptr && Claim() != before)
    parent_->SetClaimed(parent_->claimed_ + Claim() - before);
}

void RateNode::Divide() {
  promised_.SetRate(committed_ > claimed_ ? committed_ - claimed_ : 0);
  shared_.SetRate(limit_ == kUnlimited ? kUnlimited : limit_ > claimed_ ? limit_ - claimed_ : 0);
}

RateNode::Answer RateNode::Ask(TimePoint now, uint64_t amount) {
  Answer answer;
  for (RateNode* node = this; node != nullptr; node = node->parent_) {
    answer.last = node;
    answer.opens = node->shared_.Opens(now, amount);
    if (answer.opens > now) {
      answer.closed = node;
      return answer;
    }
    if (node->promised_.Opens(now, amount) <= now) {
      answer.promised = true;
      return answer;
    }
  }
  return answer;
}

void RateNode::Charge(const Answer& answer, TimePoint now, uint64_t amount) {
  for (RateNode* node = this; node != nullptr; node = node->parent_) {
    node->shared_.Charge(now, amount);
    if (node != answer.last) continue;
    if (answer.promised) node->promised_.Charge(now, amount);
    return;
  }
}

const RateNode* RateNode::Take(TimePoint now) {
  const Answer answer = Ask(now, 1);
  if (answer.closed == nullptr) Charge(answer, now, 1);
  return answer.closed;
}

}  // namespace rocegw::tenant
