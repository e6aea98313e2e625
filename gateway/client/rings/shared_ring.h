// SPDX-License-Identifier: Apache-2.0
// Producer side of a shared receive queue. Its queue pairs complete receives in any order, so slots
// come from a free list and their order is in a ring of its own: a slow receive does not hold up
// other slots. Posting and freeing: any thread. Errors: ENOMEM queue full, EINVAL invalid request.
#pragma once

#include "gateway/client/rings/receive_slots.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct SharedRing : ReceiveSlots {
  SpinLock lock;
  uint32_t capacity;  // receives that may be posted
  uint32_t producer;  // next index of the order ring, free running
  uint32_t* order;
  rocegw_srq_control* control;
  uint32_t* free_slots;  // a stack
  uint32_t free_count;
  uint8_t* posted;  // per slot: posted and not freed since
};

// Marks all slots as free. ENOMEM or 0.
int InitShared(SharedRing& ring);
void DestroyShared(SharedRing& ring);

// New memory of slots and order, with the same content.
struct SharedQueue {
  uint32_t entries;
  uint8_t* slots;
  uint32_t* order;
};
// Calls move(SharedQueue*), in which the daemon moves the queue, while nothing is posted or freed.
// 0 or its errno; EINVAL if more is posted than the new capacity, ENOMEM.
struct MoveShared {
  int (*call)(void* context, SharedQueue* to);
  void* context;
};
int ResizeShared(SharedRing& ring, uint32_t capacity, MoveShared move);

int PostShared(SharedRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad);
// Frees a slot whose completion was polled, or will not come.
void FreeShared(SharedRing& ring, uint32_t slot);
// Frees the slot of a receive that the daemon does not complete any more. Returns false if none is
// posted there.
bool TakeBack(SharedRing& ring, uint32_t slot, uint64_t* wr_id);

}  // namespace rocegw::client
