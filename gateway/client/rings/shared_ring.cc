// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/shared_ring.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

int InitShared(SharedRing& ring) {
  const uint32_t entries = ring.mask + 1;
  ring.free_slots = static_cast<uint32_t*>(calloc(entries, sizeof(uint32_t)));
  if (ring.free_slots == nullptr) return ENOMEM;
  // The first to be used lies on top.
  for (uint32_t slot = entries; slot != 0; --slot) ring.free_slots[ring.free_count++] = slot - 1;
  return 0;
}

void DestroyShared(SharedRing& ring) {
  free(ring.free_slots);
  ring.free_slots = nullptr;
}

int PostShared(SharedRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SpinGuard guard(ring.lock);
  int error = 0;
  for (; wr != nullptr; wr = wr->next) {
    if (ring.free_count == 0) {
      error = ENOMEM;
      break;
    }
    const uint32_t slot = ring.free_slots[ring.free_count - 1];
    error = WriteReceive(ring, slot, *wr);
    if (error != 0) break;
    --ring.free_count;
    ring.order[ring.producer & ring.mask] = slot;
    ++ring.producer;
  }
  if (error != 0) *bad = wr;
  // Nobody waits for it: who found the queue empty has told its peer to come again.
  StoreRelease(&ring.control->producer, ring.producer);
  return error;
}

void FreeShared(SharedRing& ring, uint32_t slot) {
  SpinGuard guard(ring.lock);
  if (ring.free_count <= ring.mask) ring.free_slots[ring.free_count++] = slot & ring.mask;
}

}  // namespace rocegw::client
