// SPDX-License-Identifier: Apache-2.0
// Extended calls that create QPs and CQs. Features beyond the plain calls and those here are
// refused with EOPNOTSUPP, on which programs use the plain calls. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// Returns the plain attributes if `attr` asks only for them, a PD and supported ibv_wr_* calls;
// otherwise EOPNOTSUPP.
int ToBasicAttr(ibv_context* context, const ibv_qp_init_attr_ex& attr, ibv_qp_init_attr* basic);
// Returns true if `attr` names an XRC domain of the context.
bool InXrcd(const ibv_qp_init_attr_ex& attr, const ibv_context* context);
// Adds the calls that `attr` asks for to a queue pair created from the plain attributes. 0 or
// ENOMEM.
int AddCalls(const ibv_qp_init_attr_ex& attr, ibv_qp* qp);
ibv_qp* CreateQpExtended(ibv_context* context, ibv_qp_init_attr_ex* attr);
ibv_cq_ex* CreateCqExtended(ibv_context* context, ibv_cq_init_attr_ex* attr);

}  // namespace rocegw::client
