// SPDX-License-Identifier: Apache-2.0
// States of an endpoint as its program sees them (enum rocegw_ep_state). The sending half and the
// receiving half have states of their own: SUSPENDED and EXCEPTION stop the first, DRAINING closes
// the second.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::transport {

enum class EndpointState : uint8_t {
  kReset = ROCEGW_EP_RESET,          // RESET, INIT or RTR of the queue pair
  kReady = ROCEGW_EP_READY,          // sends and receives
  kSuspended = ROCEGW_EP_SUSPENDED,  // begins no request
  kDraining = ROCEGW_EP_DRAINING,    // takes no new message
  kException = ROCEGW_EP_EXCEPTION,  // suspended by the failure of a request
  kError = ROCEGW_EP_ERROR,          // completes requests and receives as flushed
};

struct EndpointStatus {
  EndpointState state = EndpointState::kReset;
  uint32_t requests = 0;  // begun and not complete
  uint32_t messages = 0;  // messages of others: begun, or not answered yet
  uint64_t failures = 0;  // requests that failed since the endpoint was made, without flushed ones
};

}  // namespace rocegw::transport
