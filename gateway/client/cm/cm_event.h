// SPDX-License-Identifier: Apache-2.0
// Events of the connection manager, and calls that wait for theirs. Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// Waits for the event that completes a synchronous id's call; 0, or -1 and errno.
int Complete(CmId* id);
// Completes a call to the installed library; for an id of ours it waits for the event if necessary.
int FinishReal(rdma_cm_id* id, int result);

}  // namespace rocegw::client
