// SPDX-License-Identifier: Apache-2.0
// The data path operations as they stand in a context's table, and creation of QPs for the
// connection manager. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

int PostSendOnQp(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad);
int PostReceiveOnQp(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad);
int PostReceiveOnSrq(ibv_srq* srq, ibv_recv_wr* wr, ibv_recv_wr** bad);
int RequestNotify(ibv_cq* cq, int solicited_only);

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type);
int BindMw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int DeallocMw(ibv_mw* mw);

// What a queue pair is to be beside what verbs have a word for; 0: as verbs.
struct Ordering {
  uint32_t service_mode;  // enum rocegwdv_service_mode
  uint32_t execution_order;
  uint32_t completion_order;
  uint32_t flags;  // enum rocegw_wqe_flags of requests that do not say their order
  bool endpoint;
  uint32_t give_up_ms;
  uint32_t group;  // the daemon's handle
  uint32_t cm_id;  // the daemon's handle: it comes in INIT, for that connection
};

// nullptr and errno. `attr->cap` holds what was given.
ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr, const Ordering& ordering = {});

// From RESET to INIT, RTR and RTS, and whatever else a state needs. 0 or errno.
int ModifyQp(ibv_qp* qp, const ibv_qp_attr& attr, int mask);
int DestroyQp(ibv_qp* qp);
// The daemon moves it without being asked by ModifyQp.
void Moved(ibv_qp* qp, ibv_qp_state state);

void ToAddressVector(const ibv_ah_attr& attr, rocegw_address_vector* vector);
void FromQpAttr(const rocegw_qp_attr& from, ibv_qp_attr* to);

}  // namespace rocegw::client
