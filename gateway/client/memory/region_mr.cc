// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/region_mr.h"

namespace rocegw::client {

void FillMr(const MrWish& wish, const rocegw_mr_reply& reply, Mr* mr) {
  mr->access = wish.access;
  mr->iova = wish.iova;
  mr->ibv.context = wish.pd->context;
  mr->ibv.pd = wish.pd;
  mr->ibv.addr = wish.address;
  mr->ibv.length = wish.length;
  mr->ibv.handle = reply.handle;
  mr->ibv.lkey = reply.lkey;
  mr->ibv.rkey = reply.rkey;
}

int RegisterIn(uint32_t region, uint64_t offset, const MrWish& wish, uint32_t granted,
               uint32_t key_access, Mr* mr) {
  Session* const session = SessionOf(wish.pd->context);
  rocegw_reg_mr request = {};
  request.pd = wish.pd->handle;
  request.access = granted;
  request.address = wish.start;
  request.length = wish.length;
  request.iova = wish.iova;
  request.region = region;
  request.region_offset = offset;
  rocegw_mr_reply reply;
  int error = session->Call(ROCEGW_MSG_REG_MR, &request, &reply);
  if (error != 0) return error;
  error = session->keys().Insert(reply.lkey,
                                 {wish.iova, wish.length, wish.start, wish.pd->handle, key_access});
  if (error != 0) {
    session->CallDestroy(ROCEGW_MSG_DEREG_MR, reply.handle);
    return error;
  }
  FillMr(wish, reply, mr);
  return 0;
}

}  // namespace rocegw::client
