// SPDX-License-Identifier: Apache-2.0
// The extended ways to make QPs and CQs. What they ask beyond the plain ways and what is told here
// is refused with EOPNOTSUPP, which programs take as the sign to use the plain ones. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace rocegw::client {

// The plain attributes when `attr` asks for no more than those, a PD and ibv_wr_* calls that there
// are; EOPNOTSUPP otherwise.
int ToBasicAttr(ibv_context* context, const ibv_qp_init_attr_ex& attr, ibv_qp_init_attr* basic);
// It names an XRC domain of the context.
bool InXrcd(const ibv_qp_init_attr_ex& attr, const ibv_context* context);
// Gives a queue pair that was made from the plain ones the calls that `attr` asks for. 0 or ENOMEM.
int AddCalls(const ibv_qp_init_attr_ex& attr, ibv_qp* qp);
ibv_qp* CreateQpExtended(ibv_context* context, ibv_qp_init_attr_ex* attr);
ibv_cq_ex* CreateCqExtended(ibv_context* context, ibv_cq_init_attr_ex* attr);

}  // namespace rocegw::client
