// SPDX-License-Identifier: Apache-2.0
// UDP source port from a flow label: its 20 bits are folded into the upper quarter of the port
// range, as Linux and RNICs do (IBTA annex A17.9.3), so that a fabric sees the entropy that the
// connection's owner chose. Receivers must not interpret it.
#pragma once

#include <cstdint>

namespace rocegw::wire {

inline constexpr uint32_t kFlowLabelMask = 0xFFFFF;

constexpr uint16_t SourcePortOfFlowLabel(uint32_t flow_label) {
  return static_cast<uint16_t>(((flow_label & 0x3FFF) ^ ((flow_label & 0xFC000) >> 14)) | 0xC000);
}

}  // namespace rocegw::wire
