// SPDX-License-Identifier: Apache-2.0
// Multicast groups of an id, beside the calls that programs make. Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

namespace rocegw::client {

struct CmId;

// The event of that join was read: attaches the id's queue pair, and fills in what the program
// finds there. False: the program has left the group meanwhile.
bool FinishJoin(CmId* id, uint32_t number, rdma_cm_event* event);
// Before the id's queue pair goes.
void DetachGroups(CmId* id);
// When the id goes.
void ForgetGroups(CmId* id);

}  // namespace rocegw::client
