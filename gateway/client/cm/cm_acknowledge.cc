// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_acknowledge.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

void Acknowledge(rdma_cm_event* rdma) {
  auto* event = reinterpret_cast<CmEvent*>(rdma);
  CmId* counted_on = event->counted_on;
  free(event);
  CountAcknowledged(counted_on);
}

}  // namespace rocegw::client

ROCEGW_EXPORT int rdma_ack_cm_event(rdma_cm_event* rdma) {
  if (rdma == nullptr) return rocegw::client::CmError(EINVAL);
  // A request counts on the listener, since its new id may be destroyed before.
  const rdma_cm_id* alive = rdma->listen_id != nullptr ? rdma->listen_id : rdma->id;
  if (!rocegw::client::IsOurs(alive)) return ROCEGW_REAL(rdma_ack_cm_event)(rdma);
  rocegw::client::Acknowledge(rdma);
  return 0;
}
