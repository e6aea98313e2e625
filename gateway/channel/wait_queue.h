// SPDX-License-Identifier: Apache-2.0
// Wait queue of a channel: queue pairs that have no window, by tenant. The tenant with the least
// service since it began to wait is next; its queue pairs follow round-robin (start-time fair
// queueing over tenants). Holds no memory while empty. Belongs to its channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/ids.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

class WaitQueue {
 public:
  bool empty() const { return crowd_ == nullptr; }
  uint32_t size() const;  // number of queue pairs
  // Appends a queue pair; a queue pair waits at most once. `goes_on`: its quantum is not used up,
  // so it goes to the front of its tenant.
  void Push(uint32_t tenant, WorkerObject qp, bool goes_on = false);
  // Removes the next queue pair. Must not be called on an empty queue.
  WorkerObject Pop();
  // Adds bytes that a queue pair of the tenant has sent.
  void Charge(uint32_t tenant, uint64_t bytes);
  // Bytes of memory.
  size_t bytes() const;
  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);

 private:
  struct Tenant {
    uint32_t tag = 0;
    uint64_t served =
        0;  // bytes of service while queue pairs wait; at least `time` when it begins to wait
    GrowingRing<WorkerObject> waiting;
  };
  struct Crowd {
    std::vector<Tenant> tenants;  // tenants that wait, or waited while others did
    uint64_t time = 0;            // service of the last tenant before its turn
    size_t turn = 0;
  };
  std::unique_ptr<Crowd> crowd_;  // nullptr while the queue is empty
};

}  // namespace rocegw::channel
