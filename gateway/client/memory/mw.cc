// SPDX-License-Identifier: Apache-2.0
// Memory windows. Binding is a work request, also through ibv_bind_mw.
#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {

ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) {
  auto* mw = MakeObject<ibv_mw>();
  if (mw == nullptr) return nullptr;
  rocegw_alloc_mw request = {};
  request.pd = pd->handle;
  request.type = type;
  rocegw_mw_reply reply;
  const int error = SessionOf(pd->context)->Call(ROCEGW_MSG_ALLOC_MW, &request, &reply);
  if (error != 0) {
    free(mw);
    errno = OfAnyDaemon(error);
    return nullptr;
  }
  mw->context = pd->context;
  mw->pd = pd;
  mw->rkey = reply.rkey;
  mw->handle = reply.handle;
  mw->type = type;
  return mw;
}

// The program gets the new key at once; if the request fails, the program must restore the old one.
int BindMw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  ibv_send_wr wr = {};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw = {mw, ibv_inc_rkey(mw->rkey), bind->bind_info};
  ibv_send_wr* bad;
  const int error = PostSendOnQp(qp, &wr, &bad);
  if (error == 0) mw->rkey = wr.bind_mw.rkey;
  return WithErrno(error);
}

int DeallocMw(ibv_mw* mw) {
  const int error = SessionOf(mw->context)->CallDestroy(ROCEGW_MSG_DEALLOC_MW, mw->handle);
  if (error == 0) free(mw);
  return WithErrno(error);
}

}  // namespace rocegw::client
