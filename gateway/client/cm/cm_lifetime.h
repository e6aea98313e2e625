// SPDX-License-Identifier: Apache-2.0
// Creation, migration and destruction of ids, with all that hangs on an id. Control path; any
// thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// Frees an id of ours that the daemon does not know any more, when all its events are acknowledged.
void FreeId(CmId* id);
// Implements rdma_create_id without a channel, for queue pairs of that type (0: the port space's
// type). Takes over the caller's reference to the session. -1 and errno.
int CreateSynchronousId(Session* session, rdma_cm_id** result, void* context,
                        rdma_port_space port_space, uint32_t qp_type);
// Implement rdma_destroy_id and rdma_migrate_id for an id of ours: 0, or -1 and errno.
int DestroyId(CmId* id);
int MigrateId(CmId* id, rdma_event_channel* channel);

}  // namespace rocegw::client
