// SPDX-License-Identifier: Apache-2.0
// XRC operations for a context's table: domains, their shared receive queues, and receiving queue
// pairs. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

ibv_xrcd* OpenXrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int CloseXrcd(ibv_xrcd* xrcd);
// Returns nullptr and errno on an error. `attr->cap` returns zeros.
ibv_qp* CreateXrcReceiver(ibv_xrcd* xrcd, ibv_qp_init_attr* attr);
ibv_qp* OpenQp(ibv_context* context, ibv_qp_open_attr* attr);

// srq.cc
ibv_srq* CreateSrqExtended(ibv_context* context, ibv_srq_init_attr_ex* attr);
int GetSrqNumber(ibv_srq* srq, uint32_t* number);

}  // namespace rocegw::client
