// SPDX-License-Identifier: Apache-2.0
// Conversion of queue pair attributes from the attach protocol to the data path: checks ranges and
// turns indices into addresses. The QP itself checks which attributes a transition requires or
// allows (IBTA 11.2.5.2). Pure functions.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/session/options.h"
#include "gateway/verbs/types.h"

namespace rocegw::session {

// Returns the UDP source port of a path: from its flow label if set; else from the addresses and
// the destination's bucket, so that a merged buffer of the receiver belongs to one worker.
uint16_t SourcePortFor(const wire::Gid& source, const wire::Gid& destination, Qpn peer,
                       uint32_t flow_label);

// Returns EINVAL with a reason. `destination`: current destination QPN, for masks with an address
// vector but without a QPN.
StatusOr<verbs::QpAttributes> FromClient(const rocegw_qp_attr& attr, uint32_t mask,
                                         const Device& device, const DeviceBounds& bounds,
                                         Qpn destination);

rocegw_qp_attr ToClient(const verbs::QpAttributes& attributes);

}  // namespace rocegw::session
