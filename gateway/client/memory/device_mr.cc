// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/memory/device_mr.h"

#include <cerrno>
#include <cstring>

#include "gateway/client/process/report.h"
#include "gateway/client/rings/receive_slots.h"

namespace rocegw::client {

namespace {

// The gateway grants no atomics, which programs ask for with everything else: a peer's atomic ends
// with a remote access error.
constexpr uint32_t kNeedLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint32_t kDataAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | kNeedLocalWrite;
constexpr uint32_t kIgnoredAccess =
    uint32_t{IBV_ACCESS_HUGETLB} | uint32_t{IBV_ACCESS_OPTIONAL_RANGE};

int Check(const DeviceWish& wish, const rocegw_import_device& allocation) {
  if ((wish.access & ~(kDataAccess | kIgnoredAccess)) != 0) return EOPNOTSUPP;
  if ((wish.access & kNeedLocalWrite) != 0 && (wish.access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return EINVAL;
  }
  if (wish.length == 0 || wish.iova > UINT64_MAX - wish.length) return EINVAL;
  const uint64_t offset = wish.start - allocation.address;
  return offset <= allocation.length && wish.length <= allocation.length - offset ? 0 : EFAULT;
}

int RegisterIn(uint32_t region, const DeviceWish& wish, uint64_t offset, Mr* mr) {
  Session* const session = SessionOf(wish.pd->context);
  rocegw_reg_mr request = {};
  request.pd = wish.pd->handle;
  request.access = wish.access & kDataAccess;
  request.address = wish.start;
  request.length = wish.length;
  request.iova = wish.iova;
  request.region = region;
  request.region_offset = offset;
  rocegw_mr_reply reply;
  int error = session->Call(ROCEGW_MSG_REG_MR, &request, &reply);
  if (error != 0) return error;
  copy_to_device = CopyToDevice;
  error = session->keys().Insert(reply.lkey, {wish.iova, wish.length, wish.start, wish.pd->handle,
                                              wish.access | kAccessDeviceMemory});
  if (error != 0) {
    session->CallDestroy(ROCEGW_MSG_DEREG_MR, reply.handle);
    return error;
  }
  mr->device_region = region;
  mr->access = wish.access;
  mr->iova = wish.iova;
  mr->ibv.context = wish.pd->context;
  mr->ibv.pd = wish.pd;
  mr->ibv.addr = wish.address;
  mr->ibv.length = wish.length;
  mr->ibv.handle = reply.handle;
  mr->ibv.lkey = reply.lkey;
  mr->ibv.rkey = reply.rkey;
  return 0;
}

}  // namespace

int RegisterDevice(const DeviceWish& wish, rocegw_import_device* allocation, Mr* mr) {
  int error = Check(wish, *allocation);
  if (error != 0) return error;
  Session* const session = SessionOf(wish.pd->context);
  rocegw_object_reply reply;
  error = OfAnyDaemon(session->Call(ROCEGW_MSG_IMPORT_DEVICE, allocation, &reply));
  if (error != 0) {
    Debug("the gateway does not open the GPU's memory at %#llx: %s",
          static_cast<unsigned long long>(wish.start), strerror(error));
    return error;
  }
  error = RegisterIn(reply.handle, wish, wish.start - allocation->address, mr);
  if (error != 0) session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, reply.handle);
  return error;
}

}  // namespace rocegw::client
