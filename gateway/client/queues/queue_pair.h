// SPDX-License-Identifier: Apache-2.0
// Data path operations for a context's table, and creation of QPs for the connection manager. Any
// thread.
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

// Properties of a queue pair beyond verbs; 0: as in verbs.
struct Ordering {
  uint32_t service_mode;  // enum rocegwdv_service_mode
  uint32_t execution_order;
  uint32_t completion_order;
  uint32_t flags;  // enum rocegw_wqe_flags of requests without an order of their own
  bool endpoint;
  uint32_t give_up_ms;
  uint32_t group;       // the daemon's handle
  uint32_t cm_id;       // the daemon's handle: the QP is created in INIT, for that connection
  uint32_t on_failure;  // endpoint: enum rocegwdv_ep_failure
};

// Returns nullptr and errno on an error. `attr->cap` returns the actual sizes.
ibv_qp* CreateQp(ibv_pd* pd, ibv_qp_init_attr* attr, const Ordering& ordering = {});

// Moves from RESET to INIT, RTR and RTS, with what else a state needs. 0 or errno.
int ModifyQp(ibv_qp* qp, const ibv_qp_attr& attr, int mask);
int DestroyQp(ibv_qp* qp);
// Records the state that a request or an event of the library gave the queue pair.
void SetState(ibv_qp* qp, ibv_qp_state state);
// Returns the number of changes of the state so far, to be passed to LearnState.
uint32_t MovesOf(ibv_qp* qp);
// Records the state that the daemon has answered, for instance after an error. Returns false, and
// records nothing, if the queue pair has moved since `moves`: the answer may be from before that.
bool LearnState(ibv_qp* qp, ibv_qp_state state, uint32_t moves);

void ToAddressVector(const ibv_ah_attr& attr, rocegw_address_vector* vector);
void FromQpAttr(const rocegw_qp_attr& from, ibv_qp_attr* to);

}  // namespace rocegw::client
