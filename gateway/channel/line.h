// SPDX-License-Identifier: Apache-2.0
// Queue pairs that wait for room on a channel, by tenant: whoever has had least since it began to
// wait is next, tenant by tenant and, within one, queue pair after queue pair (start-time fair
// queueing over tenants, round robin below). Holds no memory while nobody waits. Belongs to its
// channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/ids.h"

namespace rocegw::channel {

class Line {
 public:
  bool empty() const { return crowd_ == nullptr; }
  uint32_t size() const;  // queue pairs
  // A queue pair stands in it at most once. `goes_on`: its turn is not over, so it is the next of
  // its tenant.
  void Push(uint32_t tenant, SlotHandle qp, bool goes_on = false);
  // Takes whose turn it is; not on an empty line.
  SlotHandle Pop();
  // Bytes that a tenant's queue pairs have sent.
  void Charge(uint32_t tenant, uint64_t bytes);
  // Of memory.
  size_t bytes() const;

 private:
  struct Tenant {
    uint32_t tag = 0;
    uint64_t served = 0;  // bytes, since somebody waits; never behind the time while it waits
    GrowingRing<SlotHandle> waiting;
  };
  struct Crowd {
    std::vector<Tenant> tenants;  // who waits, or has waited while others did
    uint64_t time = 0;            // what the tenant of the newest turn had been served before it
    size_t turn = 0;
  };
  std::unique_ptr<Crowd> crowd_;  // nullptr: nobody waits
};

}  // namespace rocegw::channel
