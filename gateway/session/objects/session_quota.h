// SPDX-License-Identifier: Apache-2.0
// Access of one session to its pool's quota and to the limits of its attach socket. It keeps no
// amounts: whoever takes one gives it back. Owner: the session, control thread.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/tenant/charge.h"
#include "gateway/tenant/registry.h"
#include "gateway/tenant/slot_share.h"

namespace rocegw::session {

class HeapReturn;
class PoolRules;

class SessionQuota {
 public:
  // `slot`: limits of the session's attach socket; nullptr: the pool's only. The others outlive the
  // object.
  SessionQuota(PoolRules& rules, HeapReturn& heap, tenant::Pool& pool,
               std::shared_ptr<tenant::SlotShare> slot)
      : rules_(rules), heap_(heap), pool_(pool), slot_(std::move(slot)) {}

  tenant::Pool& pool() const { return pool_; }
  const std::shared_ptr<tenant::SlotShare>& slot() const { return slot_; }

  // Takes an amount from the slot's limits and the pool's quota. Returns 0, or the errno to answer
  // with.
  [[nodiscard]] int Take(tenant::Resource resource, uint64_t amount = 1);
  // Takes an amount for the lifetime of `charge`.
  [[nodiscard]] int Take(tenant::Resource resource, uint64_t amount, tenant::Charge& charge);
  void Give(tenant::Resource resource, uint64_t amount = 1);
  // Returns the most of a resource that this session can ever get.
  uint64_t Peak(tenant::Resource resource) const;

 private:
  PoolRules& rules_;
  HeapReturn& heap_;
  tenant::Pool& pool_;
  const std::shared_ptr<tenant::SlotShare> slot_;
};

}  // namespace rocegw::session
