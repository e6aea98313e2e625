// SPDX-License-Identifier: Apache-2.0
#include "gateway/tenant/quota_node.h"

#include <algorithm>
#include <utility>

#include "gateway/base/invariant.h"

namespace rocegw::tenant {

QuotaNode::QuotaNode(std::string name, Level level, QuotaNode* parent)
    : name_(std::move(name)),
      level_(level),
      parent_(parent),
      lock_(parent == nullptr ? own_lock_ : parent->lock_) {}

QuotaNode::~QuotaNode() {
  (void)ROCEGW_INVARIANT(unused(), "quota-node-destroyed-in-use");
  SetQuota({});
}

bool QuotaNode::unused() const {
  const Locked locked(lock_);
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.used == 0; });
}

void QuotaNode::SetQuota(const Quota& quota) {
  const Locked locked(lock_);
  for (size_t i = 0; i < kResources; ++i) {
    Slot& slot = slots_[i];
    const uint64_t before = slot.Claim();
    slot.committed = quota.committed.held[i];
    slot.limit = std::max(quota.peak.held[i], slot.committed);
    // Unsigned differences wrap around and cancel out.
    if (parent_ != nullptr)
      parent_->SetClaimed(i, parent_->slots_[i].claimed + slot.Claim() - before);
  }
}

void QuotaNode::SetClaimed(size_t i, uint64_t claimed) {
  Slot& slot = slots_[i];
  const uint64_t before = slot.Claim();
  slot.claimed = claimed;
  const uint64_t after = slot.Claim();
  if (parent_ != nullptr && after != before)
    parent_->SetClaimed(i, parent_->slots_[i].claimed + after - before);
}

const QuotaNode* QuotaNode::RefusingOf(Resource resource, uint64_t amount) const {
  const auto i = static_cast<size_t>(resource);
  uint64_t more = amount;
  for (const QuotaNode* node = this; node != nullptr && more != 0; node = node->parent_) {
    const Slot& slot = node->slots_[i];
    if (slot.claimed > slot.limit || more > slot.limit - slot.claimed) return node;
    more = std::max(slot.claimed + more, slot.committed) - slot.Claim();
  }
  if (IsOfDaemon(resource) && slots_[i].claimed + amount > ThresholdOf(resource)) return &RootOf();
  return nullptr;
}

uint64_t QuotaNode::ThresholdOf(Resource resource) const {
  const auto i = static_cast<size_t>(resource);
  const Slot& root = RootOf().slots_[i];
  const uint64_t free = root.limit > root.claimed ? root.limit - root.claimed : 0;
  if (free > kUnlimited / kDaemonShare) return kUnlimited;
  return std::max(slots_[i].committed, free * kDaemonShare);
}

const QuotaNode* QuotaNode::Take(Resource resource, uint64_t amount) {
  const Locked locked(lock_);
  if (const QuotaNode* const by = RefusingOf(resource, amount)) return by;
  Add(resource, amount);
  return nullptr;
}

void QuotaNode::Adopt(Resource resource, uint64_t amount) {
  const Locked locked(lock_);
  Add(resource, amount);
}

void QuotaNode::Add(Resource resource, uint64_t amount) {
  const auto i = static_cast<size_t>(resource);
  SetClaimed(i, slots_[i].claimed + amount);
  for (QuotaNode* node = this; node != nullptr; node = node->parent_)
    node->slots_[i].used += amount;
}

void QuotaNode::Give(Resource resource, uint64_t amount) {
  const Locked locked(lock_);
  const auto i = static_cast<size_t>(resource);
  if (!ROCEGW_INVARIANT(amount <= slots_[i].used, "quota-given-back-more-than-taken")) return;
  for (QuotaNode* node = this; node != nullptr; node = node->parent_)
    node->slots_[i].used -= amount;
  SetClaimed(i, slots_[i].claimed - amount);
}

uint64_t QuotaNode::Left(Resource resource) const {
  const Locked locked(lock_);
  const uint64_t left = LeftOf(resource);
  if (!IsOfDaemon(resource)) return left;
  const uint64_t claimed = slots_[static_cast<size_t>(resource)].claimed;
  const uint64_t most = ThresholdOf(resource);
  return std::min(left, most > claimed ? most - claimed : 0);
}

uint64_t QuotaNode::LeftOf(Resource resource) const {
  const Slot& slot = slots_[static_cast<size_t>(resource)];
  if (slot.claimed >= slot.limit) return 0;
  const uint64_t own = slot.limit - slot.claimed;
  if (parent_ == nullptr) return own;
  const uint64_t promised = slot.committed > slot.claimed ? slot.committed - slot.claimed : 0;
  const uint64_t above = parent_->LeftOf(resource);
  // `promised` is at most `own`, so this does not overflow.
  return own - promised <= above ? own : promised + above;
}

}  // namespace rocegw::tenant
