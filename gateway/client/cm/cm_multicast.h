// SPDX-License-Identifier: Apache-2.0
// Multicast groups of an id. The daemon answers a join with an event that contains the group's
// address; when the event is read, the id's queue pair is attached, as in librdmacm. Errno values.
// Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

namespace rocegw::client {

struct CmId;

// Asks the daemon to join a group; its event follows. `receives`: the id's queue pair gets the
// group's messages.
int BeginJoin(CmId* id, const sockaddr* address, bool receives, void* context);
int LeaveGroup(CmId* id, const sockaddr* address);
// Handles the event of a join: attaches the id's queue pair and fills in the event. Returns false
// if the program has left the group meanwhile.
bool FinishJoin(CmId* id, uint32_t number, rdma_cm_event* event);
// Call before the id's queue pair is destroyed.
void DetachGroups(CmId* id);
// Call when the id is destroyed.
void ForgetGroups(CmId* id);

}  // namespace rocegw::client
