// SPDX-License-Identifier: Apache-2.0
// Node of the quota tree: the gateway, tenants below it, pools below them. A pool takes and returns
// amounts. Each level above sees what the pool *claims*: what it holds, or its committed amount if
// that is more. So an amount committed to one pool is never given to another, and taking within the
// committed amount cannot fail above. A changed quota revokes nothing: a pool keeps what it holds
// beyond a lowered limit and gets nothing more. The sums of committed amounts are checked
// beforehand (commitments.h).
//
// The owner of the configuration creates, changes and destroys nodes. Take, give back and queries
// are for any thread: a tree has one lock, held for a few additions, so that amounts taken by
// workers (channels) and by the control thread are counted exactly.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

// kSlot: the programs of one attach socket (slot_share.h), which have no node of their own.
enum class Level : uint8_t { kGateway, kTenant, kPool, kSlot };

class QuotaNode {
 public:
  // Creates a node without committed amounts and limits. The parent must outlive its children.
  QuotaNode(std::string name, Level level, QuotaNode* parent);
  // The node must hold nothing and have no children.
  ~QuotaNode();
  QuotaNode(const QuotaNode&) = delete;
  QuotaNode& operator=(const QuotaNode&) = delete;

  // Sets the limits. A peak below the committed amount counts as that amount. Rates are in
  // rate_node.h.
  void SetQuota(const Quota& quota);

  // Takes an amount for a pool. Returns nullptr if granted, else the node whose limit is reached,
  // and changes nothing.
  [[nodiscard]] const QuotaNode* Take(Resource resource, uint64_t amount = 1);
  // Returns what Take would return.
  const QuotaNode* Refusing(Resource resource, uint64_t amount) const {
    const Locked locked(lock_);
    return RefusingOf(resource, amount);
  }
  // Takes an amount that the pool held in the gateway before this one, whatever the limits are now:
  // a changed quota revokes nothing.
  void Adopt(Resource resource, uint64_t amount = 1);
  void Give(Resource resource, uint64_t amount = 1);
  // Returns the largest amount that Take would grant now.
  uint64_t Left(Resource resource) const;

  uint64_t used(Resource resource) const { return At(resource).used; }
  uint64_t limit(Resource resource) const { return At(resource).limit; }
  uint64_t committed(Resource resource) const { return At(resource).committed; }
  const std::string& name() const { return name_; }
  Level level() const { return level_; }
  QuotaNode* parent() const { return parent_; }
  bool unused() const;

 private:
  struct Slot {
    uint64_t used = 0;     // by all pools at or below this node
    uint64_t claimed = 0;  // pool: equal to `used`; above: sum of the children's claims
    uint64_t committed = 0;
    uint64_t limit = kUnlimited;

    uint64_t Claim() const { return claimed > committed ? claimed : committed; }
  };

  using Locked = std::lock_guard<std::mutex>;

  Slot At(Resource resource) const {
    const Locked locked(lock_);
    return slots_[static_cast<size_t>(resource)];
  }
  // Functions below require the lock.
  void Add(Resource resource, uint64_t amount);
  const QuotaNode* RefusingOf(Resource resource, uint64_t amount) const;
  uint64_t LeftOf(Resource resource) const;
  const QuotaNode& RootOf() const { return parent_ == nullptr ? *this : parent_->RootOf(); }
  // Returns the most that this pool may hold now of a resource of the daemon (IsOfDaemon).
  uint64_t ThresholdOf(Resource resource) const;
  // Sets the claim of this node and updates the levels above.
  void SetClaimed(size_t slot, uint64_t claimed);

  const std::string name_;
  const Level level_;
  QuotaNode* const parent_;
  std::mutex own_lock_;  // lock of the root, used by the whole tree
  std::mutex& lock_;
  std::array<Slot, kResources> slots_;
};

}  // namespace rocegw::tenant
