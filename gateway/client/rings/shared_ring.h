// SPDX-License-Identifier: Apache-2.0
// Producer side of a shared receive queue. Its queue pairs complete receives in any order, so slots
// are handed out from a list of free ones and their order lies in a ring of its own: a receive that
// takes long holds up no other slot. Posting and freeing: any thread. Errors: ENOMEM queue full,
// EINVAL request wrong.
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
  uint8_t* posted;  // by slot: posted and not freed since
};

// All slots become free. ENOMEM or 0.
int InitShared(SharedRing& ring);
void DestroyShared(SharedRing& ring);

// Slots and their order in other memory, which holds what they held.
struct SharedQueue {
  uint32_t entries;
  uint8_t* slots;
  uint32_t* order;
};
// Calls move(SharedQueue*) while nothing is posted or freed: the daemon moves the queue there. 0 or
// its errno; EINVAL when more is posted than the new capacity, ENOMEM.
struct MoveShared {
  int (*call)(void* context, SharedQueue* to);
  void* context;
};
int ResizeShared(SharedRing& ring, uint32_t capacity, MoveShared move);

int PostShared(SharedRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad);
// Its completion was polled, or will not be.
void FreeShared(SharedRing& ring, uint32_t slot);
// The same of a receive that the daemon does not complete any more. False: none is posted there.
bool TakeBack(SharedRing& ring, uint32_t slot, uint64_t* wr_id);

}  // namespace rocegw::client
