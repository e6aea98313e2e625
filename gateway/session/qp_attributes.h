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

// UDP source port from a non-zero flow label: its 20 bits folded to 14, in the dynamic range, as
// other RoCEv2 senders do, so that a fabric sees the entropy which the connection's owner chose.
constexpr uint16_t SourcePortOfFlowLabel(uint32_t flow_label) {
  return static_cast<uint16_t>(((flow_label & 0x3FFF) ^ ((flow_label & 0xFC000) >> 14)) | 0xC000);
}

// UDP source port of a path: from its flow label, or else from the addresses and the destination's
// bucket.
uint16_t SourcePortFor(const wire::Gid& source, const wire::Gid& destination, Qpn peer,
                       uint32_t flow_label, uint32_t salt);

// EINVAL with the reason. `destination` is where the QP already goes, for masks with an address
// vector but no QPN. salt tells parallel paths apart.
StatusOr<verbs::QpAttributes> FromClient(const rocegw_qp_attr& attr, uint32_t mask,
                                         const Device& device, const DeviceBounds& bounds,
                                         Qpn destination, uint32_t salt);

rocegw_qp_attr ToClient(const verbs::QpAttributes& attributes);

}  // namespace rocegw::session
