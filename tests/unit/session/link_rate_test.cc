// SPDX-License-Identifier: Apache-2.0
// Rates of links in terms of ibv_query_port, against the rates of lanes.
#include "gateway/session/link_rate.h"

#include <gtest/gtest.h>

#include <map>

namespace rocegw::session {
namespace {

// Data rates by IBTA, PortInfo: LinkWidthActive, LinkSpeedActive and LinkSpeedExtActive.
double MbitPerSecond(LinkRate rate) {
  const std::map<int, double> lanes{{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  const std::map<int, double> speeds{{1, 2'500},   {2, 5'000},   {4, 10'000},  {8, 10'000},
                                     {16, 14'000}, {32, 25'000}, {64, 50'000}, {128, 100'000}};
  return lanes.at(rate.width) * speeds.at(rate.speed);
}

LinkRate Of(uint64_t mbit) { return RateOf(mbit * 125'000); }

TEST(LinkRate, EthernetSpeeds_AreSaidExactlyFromTenGigabitsOn) {
  for (const uint64_t mbit :
       {10'000, 20'000, 25'000, 40'000, 50'000, 100'000, 200'000, 400'000, 800'000})
    EXPECT_EQ(static_cast<double>(mbit), MbitPerSecond(Of(mbit)));
}

TEST(LinkRate, OtherSpeeds_AreTheNextOnesUp) {
  EXPECT_EQ(2'500, MbitPerSecond(Of(100)));
  EXPECT_EQ(2'500, MbitPerSecond(Of(1'000)));
  EXPECT_EQ(10'000, MbitPerSecond(Of(2'500)));
  EXPECT_EQ(100'000, MbitPerSecond(Of(56'000)));
  EXPECT_EQ(800'000, MbitPerSecond(Of(1'600'000)));
}

TEST(LinkRate, ALinkThatDoesNotTell_CountsAsTenGigabits) {
  EXPECT_EQ(10'000, MbitPerSecond(RateOf(0)));
}

}  // namespace
}  // namespace rocegw::session
