// SPDX-License-Identifier: Apache-2.0
// UDP source port of a RoCEv2 connection: a hash of its flow label, or of its QPNs when it has
// none, into the upper quarter of the port range (IBTA annex A17.9.3 as Linux and RNICs compute
// it). Constant per QP, so that equal-cost paths keep its packets in order; receivers must not look
// at it.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"

namespace rocegw::wire {

inline constexpr uint32_t kFlowLabelMask = 0xFFFFF;

constexpr uint16_t UdpSourcePort(uint32_t flow_label, Qpn local, Qpn remote) {
  uint32_t label = flow_label & kFlowLabelMask;
  if (label == 0) {
    uint64_t v = static_cast<uint64_t>(local.value) * remote.value;
    v ^= v >> 20;
    v ^= v >> 40;
    label = static_cast<uint32_t>(v) & kFlowLabelMask;
  }
  return static_cast<uint16_t>(((label & 0x3FFF) ^ ((label & 0xFC000) >> 14)) | 0xC000);
}

}  // namespace rocegw::wire
