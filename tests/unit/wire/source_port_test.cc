// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/source_port.h"

#include <gtest/gtest.h>

namespace rocegw::wire {
namespace {

TEST(UdpSourcePort, FlowLabel_IsFoldedIntoTheUpperQuarter) {
  EXPECT_EQ(UdpSourcePort(0x12345, Qpn{1}, Qpn{2}), 0xE341);
  EXPECT_EQ(UdpSourcePort(0x12345, Qpn{3}, Qpn{4}), 0xE341);
  // Bits above the flow label do not count.
  EXPECT_EQ(UdpSourcePort(0xFFF12345, Qpn{1}, Qpn{2}), 0xE341);
}

TEST(UdpSourcePort, NoFlowLabel_IsMadeOfTheQpns) {
  EXPECT_EQ(UdpSourcePort(0, Qpn{0x11}, Qpn{0x12}), 0xC132);
  EXPECT_EQ(UdpSourcePort(0, Qpn{0x12}, Qpn{0x11}), 0xC132);
}

TEST(UdpSourcePort, AnyInput_StaysInTheRange) {
  for (uint32_t i = 1; i < 0x1000000; i += 4099) {
    EXPECT_GE(UdpSourcePort(i, Qpn{i}, Qpn{~i & 0xFFFFFF}), 0xC000);
    EXPECT_GE(UdpSourcePort(0, Qpn{i}, Qpn{~i & 0xFFFFFF}), 0xC000);
  }
}

}  // namespace
}  // namespace rocegw::wire
