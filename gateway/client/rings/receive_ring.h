// SPDX-License-Identifier: Apache-2.0
// Producer side of a receive queue, and the copy of short received payloads out of its payload
// area. Posting: any thread. A slot is free again when its completion has been polled (not when the
// daemon took it), because until then the SGEs in it say where the payload goes. Errors: ENOMEM
// queue full, EINVAL request wrong.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/doorbell.h"
#include "gateway/client/rings/key_table.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct ReceiveRing {
  SpinLock lock;
  uint32_t producer;  // next index, free running
  uint32_t polled;    // completions below were polled; written under the CQ's lock, read under ours
  uint32_t mask;      // entries - 1
  uint32_t stride;
  uint8_t* slots;
  const uint8_t* payload;  // nullptr: the daemon places everything
  uint32_t payload_stride;
  uint32_t max_sge;
  rocegw_qp_control* control;
  const rocegw_qp_status* status;
  Doorbell bell;
  const KeyTable* keys;
  uint32_t pd;
  uint32_t state;  // enum ibv_qp_state as the library last set it
  uint8_t* early;  // by slot: polled before older ones; nullptr: completions come in order
};

// Completions of this queue may come in any order from now on. ENOMEM or 0.
int ExpectAnyOrder(ReceiveRing& ring);
// The completion of that slot was polled. Caller holds the CQ's lock.
void MarkPolled(ReceiveRing& ring, uint32_t slot);

int PostReceive(ReceiveRing& ring, ibv_recv_wr* wr, ibv_recv_wr** bad);

// Copies the payload of completion `cqe` to where its receive wants it. False: a key is gone or the
// completion is not plausible. Caller holds the CQ's lock.
bool ScatterPayload(const ReceiveRing& ring, const rocegw_cqe& cqe);

}  // namespace rocegw::client
