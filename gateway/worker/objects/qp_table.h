// SPDX-License-Identifier: Apache-2.0
// Queue pairs of one worker: slots with generations, so that a stale handle finds nothing, and the
// map from QPNs to slots. Belongs to the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/base/containers/key_map.h"
#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/transport/queue_pair.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::worker {

struct WorkerSession;

// Fits one cache line.
struct alignas(64) QpSlot {
  std::unique_ptr<transport::QueuePair> qp;  // nullptr: unused
  uint32_t generation = 0;
  bool runnable = false;             // the scheduler has it
  WorkerSession* session = nullptr;  // nullptr while the queue pair waits in a pool's reserve
  int64_t bytes_left = 0;            // rest of its quantum; negative: sent in advance
  TimePoint armed = kNever;          // time of its earliest timer
  TimePoint deadline = kNever;       // the queue pair's, after its last event or turn (a copy)
  uint32_t records = 0;              // heap of its records that its pool pays for (record_heap.h)
};

class QpTable {
 public:
  // Return nullptr if there is no such queue pair.
  QpSlot* Find(SlotHandle handle) {
    if (handle.index >= slots_.size()) return nullptr;
    QpSlot& slot = slots_[handle.index];
    return slot.generation == handle.generation && slot.qp != nullptr ? &slot : nullptr;
  }
  QpSlot* Find(Qpn qpn) {
    const SlotHandle* const handle = HandleOf(qpn);
    return handle == nullptr ? nullptr : Find(*handle);
  }
  // Like Find, but only queue pairs of sessions.
  QpSlot* FindLinked(SlotHandle handle) {
    QpSlot* const slot = Find(handle);
    return slot != nullptr && slot->session != nullptr ? slot : nullptr;
  }
  const SlotHandle* HandleOf(Qpn qpn) const { return by_qpn_.Find(qpn.value); }

  // Returns true if the queue pairs probably do not fit into the caches of a core, so that
  // prefetching pays: each has 2 to 3 KiB, and caches have 1 to 2 MiB.
  bool outgrows_caches() const { return size() > 512; }
  // Prefetch what HandleOf and Find read. PrefetchSlot returns nullptr if there is no such slot.
  void PrefetchHandle(Qpn qpn) const { by_qpn_.Prefetch(qpn.value); }
  const QpSlot* PrefetchSlot(SlotHandle handle) const {
    if (handle.index >= slots_.size()) return nullptr;
    __builtin_prefetch(&slots_[handle.index]);
    return &slots_[handle.index];
  }

  // Gives a QPN a slot, whose queue pair the caller makes. The QPN must not be in use.
  SlotHandle Add(Qpn qpn);
  // Destroys the queue pair.
  void Remove(Qpn qpn, QpSlot& slot);
  // Writes or reads the slots of the queue pairs (hand_over/tables_state.cc); the queue pairs are
  // handed over apart. The reader has the same queue pairs of sessions, in any slots.
  void HandOver(hand_over::StateStream& state);

  // All slots, unused ones included.
  std::span<QpSlot> slots() { return slots_; }
  std::span<const QpSlot> slots() const { return slots_; }
  // Number of queue pairs.
  size_t size() const { return by_qpn_.size(); }

 private:
  std::vector<QpSlot> slots_;
  std::vector<uint32_t> free_;
  KeyMap<SlotHandle> by_qpn_;
};

}  // namespace rocegw::worker
