// SPDX-License-Identifier: Apache-2.0
// XRC as it stands in a context's table: domains, the shared receive queues in them, and queue
// pairs that receive. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

ibv_xrcd* OpenXrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int CloseXrcd(ibv_xrcd* xrcd);
// nullptr and errno. `attr->cap` holds what was given: nothing.
ibv_qp* CreateXrcReceiver(ibv_xrcd* xrcd, ibv_qp_init_attr* attr);
ibv_qp* OpenQp(ibv_context* context, ibv_qp_open_attr* attr);

// srq.cc
ibv_srq* CreateSrqExtended(ibv_context* context, ibv_srq_init_attr_ex* attr);
int GetSrqNumber(ibv_srq* srq, uint32_t* number);

}  // namespace rocegw::client
