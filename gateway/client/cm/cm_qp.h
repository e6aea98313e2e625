// SPDX-License-Identifier: Apache-2.0
// Queue pairs and completion queues of an id. Errno values. Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// Returns true if connection requests move the queue pair, too.
inline bool TakesQpAlong(const CmId* id) {
  return SavesRequests(id) && id->id.qp_type == IBV_QPT_RC;
}
int ReadyQp(CmId* id, uint8_t responder_resources, uint8_t initiator_depth);
int BreakQp(CmId* id);
// Creates completion queues for a program that passes none; each with a channel, and the id as its
// context.
int MakeCompletionQueue(rdma_cm_id* id, uint32_t entries, ibv_comp_channel** channel, ibv_cq** cq);
// Destroys all queues of the id, unless an object still completes there.
void DestroyQueues(rdma_cm_id* id);

// Takes the last step of a side's connection, and moves its queue pair to `state` (RTS before it,
// or ERR).
int StepWithQp(CmId* id, CmStage right, uint32_t type, ibv_qp_state state);

}  // namespace rocegw::client
