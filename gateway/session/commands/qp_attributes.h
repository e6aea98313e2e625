// SPDX-License-Identifier: Apache-2.0
// Queue pair attributes between the attach protocol and the data path: ranges checked, indices
// turned into addresses. Which attributes a transition needs or allows is the business of the QP
// itself (IBTA 11.2.5.2). Pure functions.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/status.h"
#include "gateway/session/options.h"
#include "gateway/verbs/types.h"

namespace rocegw::session {

// UDP source port of a path: from its flow label, the connection's owner's choice; else from the
// addresses and the destination's bucket, so that the receiver's merged buffers belong to one
// worker.
uint16_t SourcePortFor(const wire::Gid& source, const wire::Gid& destination, Qpn peer,
                       uint32_t flow_label);

// EINVAL with the reason. `destination` is where the QP already goes, for masks with an address
// vector but no QPN.
StatusOr<verbs::QpAttributes> FromClient(const rocegw_qp_attr& attr, uint32_t mask,
                                         const Device& device, const DeviceBounds& bounds,
                                         Qpn destination);

rocegw_qp_attr ToClient(const verbs::QpAttributes& attributes);

}  // namespace rocegw::session
