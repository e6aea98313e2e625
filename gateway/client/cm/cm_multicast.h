// SPDX-License-Identifier: Apache-2.0
// Multicast groups of an id: parts of the implementation besides the public calls. Control path;
// any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

namespace rocegw::client {

struct CmId;

// Handles the event of a join: attaches the id's queue pair and fills in the event. Returns false
// if the program has left the group meanwhile.
bool FinishJoin(CmId* id, uint32_t number, rdma_cm_event* event);
// Call before the id's queue pair is destroyed.
void DetachGroups(CmId* id);
// Call when the id is destroyed.
void ForgetGroups(CmId* id);

}  // namespace rocegw::client
