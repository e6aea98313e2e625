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
constexpr uint32_t kIgnoredAccess =
    uint32_t{IBV_ACCESS_HUGETLB} | uint32_t{IBV_ACCESS_OPTIONAL_RANGE};

int Check(const MrWish& wish, const rocegw_import_device& allocation) {
  if ((wish.access & ~(kDataAccess | kIgnoredAccess)) != 0) return EOPNOTSUPP;
  if (!DataAccessIsValid(wish.access) || wish.length == 0 || wish.iova > UINT64_MAX - wish.length) {
    return EINVAL;
  }
  const uint64_t offset = wish.start - allocation.address;
  return offset <= allocation.length && wish.length <= allocation.length - offset ? 0 : EFAULT;
}

}  // namespace

int RegisterDevice(const MrWish& wish, rocegw_import_device* allocation, int descriptor, Mr* mr) {
  int error = Check(wish, *allocation);
  Session* const session = SessionOf(wish.pd->context);
  rocegw_object_reply reply;
  if (error == 0) {
    error = OfAnyDaemon(
        session->Call(ROCEGW_MSG_IMPORT_DEVICE, allocation, &reply, nullptr, descriptor));
  }
  CloseDeviceDescriptor(descriptor);
  if (error != 0) {
    Debug("the gateway does not open the GPU's memory at %#llx: %s",
          static_cast<unsigned long long>(wish.start), strerror(error));
    return error;
  }
  copy_to_device = CopyToDevice;
  error = RegisterIn(reply.handle, wish.start - allocation->address, wish,
                     wish.access & kDataAccess, wish.access | kAccessDeviceMemory, mr);
  if (error == 0) {
    mr->device_region = reply.handle;
  } else {
    session->CallDestroy(ROCEGW_MSG_DESTROY_REGION, reply.handle);
  }
  return error;
}

}  // namespace rocegw::client
