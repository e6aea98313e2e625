// SPDX-License-Identifier: Apache-2.0
// Events of rdma_cm as programs hold them, and their acknowledgement. Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

struct CmEvent {
  rdma_cm_event event;  // first: programs hold it
  CmId* counted_on;     // id whose counter an acknowledgement increments
  uint8_t private_data[ROCEGW_CM_PRIVATE_MAX];
};

// Acknowledges an event of an id of ours.
void Acknowledge(rdma_cm_event* event);

}  // namespace rocegw::client
