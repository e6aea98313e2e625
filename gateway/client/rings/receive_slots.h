// SPDX-License-Identifier: Apache-2.0
// Slots of receives until their completions are polled, with their SGEs, and the payload area from
// which short messages are copied. For the queue of a queue pair or a shared receive queue.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/key_table.h"

namespace rocegw::client {

struct ReceiveSlots {
  uint32_t mask;  // entries - 1
  uint32_t stride;
  uint8_t* slots;
  const uint8_t* payload;  // nullptr: the daemon places all payloads
  uint32_t payload_stride;
  uint32_t payload_slots;  // number of first slots that have such an area
  uint32_t max_sge;
  const KeyTable* keys;
  uint32_t pd;
};

// Returns EINVAL for too many SGEs; or 0.
int WriteReceive(const ReceiveSlots& slots, uint32_t slot, const ibv_recv_wr& wr);

// Copies payload to the memory of a GPU. Set before the first key with kAccessDeviceMemory is used.
// NOLINTNEXTLINE(bugprone-dynamic-static-initializers): it begins with a function
extern bool (*copy_to_device)(uint8_t* to, const uint8_t* from, uint32_t length);

// Copies the payload of completion `cqe` to the memory of its receive. Returns false if a key is
// gone or the completion is not plausible. Caller holds the CQ's lock.
bool ScatterPayload(const ReceiveSlots& slots, const rocegw_cqe& cqe);

}  // namespace rocegw::client
