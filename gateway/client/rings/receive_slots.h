// SPDX-License-Identifier: Apache-2.0
// Where receives lie until their completions are polled: slots with their SGEs, and the payload
// area that short messages are copied out of. A queue pair's own or a shared receive queue's.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/key_table.h"

namespace rocegw::client {

struct ReceiveSlots {
  uint32_t mask;  // entries - 1
  uint32_t stride;
  uint8_t* slots;
  const uint8_t* payload;  // nullptr: the daemon places everything
  uint32_t payload_stride;
  uint32_t payload_slots;  // the first so many have such an area
  uint32_t max_sge;
  const KeyTable* keys;
  uint32_t pd;
};

// EINVAL: too many SGEs; or 0.
int WriteReceive(const ReceiveSlots& slots, uint32_t slot, const ibv_recv_wr& wr);

// Copies the payload of completion `cqe` to where its receive wants it. False: a key is gone or the
// completion is not plausible. Caller holds the CQ's lock.
bool ScatterPayload(const ReceiveSlots& slots, const rocegw_cqe& cqe);

}  // namespace rocegw::client
