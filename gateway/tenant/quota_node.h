// SPDX-License-Identifier: Apache-2.0
// One level of the quota tree: the gateway, below it tenants, below them pools. A pool takes and
// gives back; each level above sees what the pool *claims*: what it holds, or what is committed to
// it if that is more. So what a neighbour was promised is never given to somebody else, and within
// what is committed nobody above is asked. A changed quota revokes nothing: what is held beyond a
// lowered limit stays, and nothing more is granted. Whoever commits sees to it beforehand that the
// sums fit (commitments.h). Owner: whoever keeps the configuration, which makes, changes and
// destroys nodes. Taking, giving back and asking belong to any thread: a tree has one lock, held
// for some additions, so that what workers take (channels) and what the control thread takes is
// counted once and exactly.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "gateway/tenant/amounts.h"

namespace rocegw::tenant {

enum class Level : uint8_t { kGateway, kTenant, kPool };

class QuotaNode {
 public:
  // The parent outlives its children. A new node has nothing committed and no limit of its own.
  QuotaNode(std::string name, Level level, QuotaNode* parent);
  // Holds nothing any more, has no children.
  ~QuotaNode();
  QuotaNode(const QuotaNode&) = delete;
  QuotaNode& operator=(const QuotaNode&) = delete;

  // A peak below what is committed counts as that much. Rates are kept elsewhere (rate_node.h).
  void SetQuota(const Quota& quota);

  // nullptr: granted. Else the node whose limit is reached, and nothing has changed. Of pools only.
  [[nodiscard]] const QuotaNode* Take(Resource resource, uint64_t amount = 1);
  // What Take would answer.
  const QuotaNode* Refusing(Resource resource, uint64_t amount) const {
    const Locked locked(lock_);
    return RefusingOf(resource, amount);
  }
  void Give(Resource resource, uint64_t amount = 1);
  // The most that Take would grant now.
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
    uint64_t claimed = 0;  // pool: as used; above: by the children
    uint64_t committed = 0;
    uint64_t limit = kUnlimited;

    uint64_t Claim() const { return claimed > committed ? claimed : committed; }
  };

  using Locked = std::lock_guard<std::mutex>;

  Slot At(Resource resource) const {
    const Locked locked(lock_);
    return slots_[static_cast<size_t>(resource)];
  }
  // What follows is called with the lock.
  const QuotaNode* RefusingOf(Resource resource, uint64_t amount) const;
  uint64_t LeftOf(Resource resource) const;
  const QuotaNode& RootOf() const { return parent_ == nullptr ? *this : parent_->RootOf(); }
  // The most that this pool may hold now of a resource of the daemon (IsOfDaemon).
  uint64_t ThresholdOf(Resource resource) const;
  // Sets what is claimed of this node and tells the levels above.
  void SetClaimed(size_t slot, uint64_t claimed);

  const std::string name_;
  const Level level_;
  QuotaNode* const parent_;
  std::mutex own_lock_;  // of the root, used by all
  std::mutex& lock_;
  std::array<Slot, kResources> slots_;
};

}  // namespace rocegw::tenant
