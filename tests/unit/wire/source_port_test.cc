// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/source_port.h"

#include <gtest/gtest.h>

namespace rocegw::wire {
namespace {

TEST(SourcePortOfFlowLabel, AllBits_AreFoldedIntoTheUpperQuarter) {
  EXPECT_EQ(SourcePortOfFlowLabel(1), 0xC001);
  EXPECT_EQ(SourcePortOfFlowLabel(0x3FFF), 0xFFFF);
  EXPECT_EQ(SourcePortOfFlowLabel(0x4000), 0xC001);
  EXPECT_EQ(SourcePortOfFlowLabel(0x12345), 0xE341);
  EXPECT_EQ(SourcePortOfFlowLabel(0xFFFFF), 0xC000 | (0x3FFF ^ 0x3F));
}

TEST(SourcePortOfFlowLabel, BitsBeyondTwenty_AreIgnored) {
  EXPECT_EQ(SourcePortOfFlowLabel(0xFFF12345), 0xE341);
}

}  // namespace
}  // namespace rocegw::wire
