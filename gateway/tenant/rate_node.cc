// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/rate_node.h"

#include <algorithm>

namespace rocegw::tenant {

void RateNode::SetRates(uint64_t committed, uint64_t peak, TimePoint now) {
  at_ = std::max(at_, now);
  const uint64_t before = Claim();
  committed_ = committed;
  limit_ = std::max(peak, committed);
  Divide(now);
  if (parent_ != nullptr && Claim() != before)
    parent_->SetClaimed(parent_->claimed_ + Claim() - before, now);
}

void RateNode::SetClaimed(uint64_t claimed, TimePoint now) {
  const uint64_t before = Claim();
  claimed_ = claimed;
  Divide(now);
  if (parent_ != nullptr && Claim() != before)
    parent_->SetClaimed(parent_->claimed_ + Claim() - before, now);
}

void RateNode::Divide(TimePoint now) {
  promised_.SetRate(committed_ > claimed_ ? committed_ - claimed_ : 0, now);
  shared_.SetRate(limit_ == kUnlimited ? kUnlimited
                  : limit_ > claimed_  ? limit_ - claimed_
                                       : 0,
                  now);
}

const RateNode* RateNode::Take(TimePoint now) {
  RateNode* beyond = this;  // first one that need not be asked
  for (; beyond != nullptr; beyond = beyond->parent_) {
    if (!beyond->shared_.Has(now)) return beyond;
    if (beyond->promised_.Has(now)) break;
  }
  for (RateNode* node = this; node != nullptr; node = node->parent_) {
    node->shared_.Take();
    if (node == beyond) {
      node->promised_.Take();
      break;
    }
  }
  return nullptr;
}

}  // namespace rocegw::tenant
