// SPDX-License-Identifier: Apache-2.0
// The data path operations as they stand in a context's table, and creation of QPs for the
// connection manager. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/objects.h"

namespace rocegw::client {

int PostSendOnQp(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int PostReceiveOnQp(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int RequestNotify(ibv_cq* cq, int solicited_only);

// What this release of the library does not have, with the errors that programs take as "not
// supported".
int RefuseSrqReceive(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int RefuseBindMw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int RefuseDeallocMw(ibv_mw* mw);

// nullptr and errno. `attr->cap` holds what was given.
ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr);

void ToAddressVector(const ibv_ah_attr& attr, rocegw_address_vector* vector);
void FromQpAttr(const rocegw_qp_attr& from, ibv_qp_attr* to);

}  // namespace rocegw::client
