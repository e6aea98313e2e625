// SPDX-License-Identifier: Apache-2.0
// Options and enhanced connection establishment, and calls that our devices do not support.
#include <cerrno>
#include <cstring>

#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/device/refusals.h"
#include "gateway/client/process/real.h"

using rocegw::client::CmError;
using rocegw::client::CmId;
using rocegw::client::FromRdma;
using rocegw::client::RealOf;
namespace refusal = rocegw::client::refusal;

namespace {

// Returns the size of the option's value; 0: unknown option, which the daemon refuses.
size_t SizeOf(int option) {
  switch (option) {
    case RDMA_OPTION_ID_TOS:
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return sizeof(uint8_t);
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
      return sizeof(int);
    default:
      return 0;
  }
}

// Stores the option for an id of the installed library that may replace this one.
void Remember(CmId* id, int name, const void* value, size_t length) {
  uint32_t at = 0;
  while (at < id->option_count && id->options[at].name != name) ++at;
  if (at == rocegw::client::kMaxCmOptions) return;
  if (at == id->option_count) ++id->option_count;
  id->options[at] = {name, length, {}};
  memcpy(id->options[at].value, value, length);
}

}  // namespace

ROCEGW_EXPORT int rdma_set_option(rdma_cm_id* rdma, int level, int option, void* value,
                                  size_t length) {
  if (rdma_cm_id* real = RealOf(rdma)) {
    return ROCEGW_REAL(rdma_set_option)(real, level, option, value, length);
  }
  // Programs cannot choose paths on Ethernet; accepted, as kernel drivers do.
  if (level == RDMA_OPTION_IB && option == RDMA_OPTION_IB_PATH) {
    return CmError(length == 0 || length % sizeof(ibv_path_data) != 0 ? EINVAL : 0);
  }
  rocegw_cm_set_option request = {};
  if (level != RDMA_OPTION_ID) return CmError(refusal::rdma_set_option);
  if (SizeOf(option) != 0 && length != SizeOf(option)) return CmError(EINVAL);
  if (length > sizeof(request.value)) return CmError(EINVAL);
  request.level = static_cast<uint32_t>(level);
  request.option = static_cast<uint32_t>(option);
  request.length = static_cast<uint32_t>(length);
  memcpy(request.value, value, length);
  const int error = CmCall(FromRdma(rdma), ROCEGW_MSG_CM_SET_OPTION, &request);
  if (error == 0) Remember(FromRdma(rdma), option, value, length);
  return CmError(error);
}

ROCEGW_EXPORT int rdma_set_local_ece(rdma_cm_id* rdma, ibv_ece* ece) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_set_local_ece)(real, ece);
  if (rdma->qp != nullptr || ece == nullptr || ece->vendor_id == 0 || ece->comp_mask != 0) {
    return CmError(EINVAL);
  }
  FromRdma(rdma)->local_ece = *ece;
  return 0;
}

ROCEGW_EXPORT int rdma_get_remote_ece(rdma_cm_id* rdma, ibv_ece* ece) {
  if (rdma_cm_id* real = RealOf(rdma)) return ROCEGW_REAL(rdma_get_remote_ece)(real, ece);
  if (rdma->qp != nullptr || ece == nullptr || ece->comp_mask != 0) return CmError(EINVAL);
  *ece = FromRdma(rdma)->remote_ece;
  return 0;
}
