// SPDX-License-Identifier: Apache-2.0
// The ibv_wr_* calls: a list of requests that is built call by call between ibv_wr_start, which
// locks the send queue, and ibv_wr_complete or ibv_wr_abort. The thread that has started builds.
// What is wrong with a request is said by ibv_wr_complete, which then posts none of them.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

// EOPNOTSUPP: queue pairs of that type have not all of these operations (enum
// ibv_qp_create_send_ops_flags), or not on that device.
int CheckSendOps(ibv_context* context, ibv_qp_type type, uint64_t ops);
// The queue pair has these calls from now on. ENOMEM or 0.
int AddSendBuilder(Qp* qp, uint64_t ops);
void RemoveSendBuilder(Qp* qp);

}  // namespace rocegw::client
