// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/shared_ring.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {

uint32_t Posted(const SharedRing& ring) { return ring.mask + 1 - ring.free_count; }

// Allocates the library's own lists. ENOMEM or 0.
int ReserveShared(SharedRing& ring, uint32_t entries) {
  auto* slots = static_cast<uint32_t*>(realloc(ring.free_slots, entries * sizeof(uint32_t)));
  if (slots == nullptr) return ENOMEM;
  ring.free_slots = slots;
  auto* posted = static_cast<uint8_t*>(realloc(ring.posted, entries));
  if (posted == nullptr) return ENOMEM;
  ring.posted = posted;
  return 0;
}

// Frees a posted slot; false if it is not posted, whatever the daemon says. Caller holds the lock.
bool Free(SharedRing& ring, uint32_t slot) {
  if (ring.posted[slot] == 0) return false;
  ring.posted[slot] = 0;
  ring.free_slots[ring.free_count++] = slot;
  return true;
}

}  // namespace

int ResizeShared(SharedRing& ring, uint32_t capacity, MoveShared move) {
  SpinGuard guard(ring.lock);
  if (capacity < Posted(ring)) return EINVAL;
  const uint32_t before = ring.mask + 1;
  if (capacity > before && ReserveShared(ring, capacity) != 0) return ENOMEM;
  SharedQueue queue;
  const int error = move.call(move.context, &queue);
  if (error != 0) return error;
  if (queue.entries < before || (queue.entries > before && queue.entries != capacity)) {
    return EPROTO;
  }
  ring.capacity = capacity;
  ring.mask = queue.entries - 1;
  ring.slots = queue.slots;
  ring.order = queue.order;
  for (uint32_t slot = queue.entries; slot != before; --slot) {
    ring.posted[slot - 1] = 0;
    ring.free_slots[ring.free_count++] = slot - 1;
  }
  return 0;
}

int InitShared(SharedRing& ring) {
  const uint32_t entries = ring.mask + 1;
  ring.free_slots = static_cast<uint32_t*>(calloc(entries, sizeof(uint32_t)));
  ring.posted = static_cast<uint8_t*>(calloc(entries, 1));
  if (ring.free_slots == nullptr || ring.posted == nullptr) {
    DestroyShared(ring);
    return ENOMEM;
  }
  // The first slot to be used is on top of the stack.
  for (uint32_t slot = entries; slot != 0; --slot) ring.free_slots[ring.free_count++] = slot - 1;
  return 0;
}

void DestroyShared(SharedRing& ring) {
  free(ring.free_slots);
  free(ring.posted);
  ring.free_slots = nullptr;
  ring.posted = nullptr;
}

int PostShared(SharedRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SpinGuard guard(ring.lock);
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    if (Posted(ring) >= ring.capacity) {
      error = ENOMEM;
      break;
    }
    const uint32_t slot = ring.free_slots[ring.free_count - 1];
    error = WriteReceive(ring, slot, *wr);
    if (error != 0) break;
    --ring.free_count;
    ring.posted[slot] = 1;
    ring.order[ring.producer & ring.mask] = slot;
    ++ring.producer;
  }
  if (error != 0) *bad = wr;
  // No worker waits for the index: a worker that found the queue empty has told its peer to retry.
  StoreRelease(&ring.control->producer, ring.producer);
  return error;
}

void FreeShared(SharedRing& ring, uint32_t slot) {
  SpinGuard guard(ring.lock);
  Free(ring, slot & ring.mask);
}

bool TakeBack(SharedRing& ring, uint32_t slot, uint64_t* wr_id) {
  SpinGuard guard(ring.lock);
  rocegw_recv_wqe wqe;
  memcpy(&wqe, ring.slots + size_t{slot} * ring.stride, sizeof(wqe));
  *wr_id = wqe.wr_id;
  return Free(ring, slot);
}

}  // namespace rocegw::client
