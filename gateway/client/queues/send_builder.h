// SPDX-License-Identifier: Apache-2.0
// ibv_wr_* calls: a list of requests built call by call between ibv_wr_start, which locks the send
// queue, and ibv_wr_complete or ibv_wr_abort, all on one thread. ibv_wr_complete reports the first
// error and then posts none of them.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

// Returns EOPNOTSUPP if queue pairs of that type lack one of these operations (enum
// ibv_qp_create_send_ops_flags), in general or on that device.
int CheckSendOps(ibv_context* context, ibv_qp_type type, uint64_t ops);
// Adds these calls to the queue pair. ENOMEM or 0.
int AddSendBuilder(Qp* qp, uint64_t ops);
void RemoveSendBuilder(Qp* qp);

}  // namespace rocegw::client
