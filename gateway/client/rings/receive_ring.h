// SPDX-License-Identifier: Apache-2.0
// Producer side of a receive queue. Posting: any thread. A slot is free again when its completion
// has been polled (not when the daemon took it), because until then its SGEs are needed for the
// payload. Errors: ENOMEM queue full, EINVAL invalid request.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/doorbell.h"
#include "gateway/client/rings/receive_slots.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct ReceiveRing : ReceiveSlots {
  SpinLock lock;
  uint32_t producer;  // next index, free running
  uint32_t polled;  // index below which completions were polled; written under the CQ's lock, read
                    // under ours
  rocegw_qp_control* control;
  const rocegw_qp_status* status;
  Doorbell bell;
  uint32_t state;  // enum ibv_qp_state as the library last set it
  uint8_t* early;  // per slot: polled before older ones; nullptr: completions come in order
};

// Lets completions of this queue come in any order from now on. ENOMEM or 0.
int ExpectAnyOrder(ReceiveRing& ring);
// Records that the slot's completion was polled. Caller holds the CQ's lock.
void MarkPolled(ReceiveRing& ring, uint32_t slot);

int PostReceive(ReceiveRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad);

}  // namespace rocegw::client
