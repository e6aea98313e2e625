// SPDX-License-Identifier: Apache-2.0
// Steps of discovery for an address that is not known yet.
#include "gateway/cm/path/discovery.h"

#include <gtest/gtest.h>

#include "tests/support/steps.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

// Returns the steps of asking 200 new addresses while the table of that size is full.
uint64_t StepsOfNewAddresses(size_t peers) {
  DiscoveryConfig config;
  config.enabled = true;
  config.max_peers = peers;
  testing::SeededRandom random(7);
  Discovery discovery(config, random);
  TimePoint now{Seconds(5).ns};
  CmActions actions;
  uint32_t next = 0x0B000000;
  const auto ask = [&] {
    discovery.Ask(testing::V4(7), wire::Gid::FromV4(next++), now, actions);
    actions = {};
  };
  const auto advance = [&](Duration by) {
    now = now + by;
    discovery.OnDeadline(now, actions);
  };
  while (discovery.size() < peers) ask();
  for (int turn = 0; turn < 40; ++turn) advance(Milliseconds(1));
  actions = {};
  const uint64_t steps = rocegw::testing::StepsOf([&] {
    for (int i = 0; i < 200; ++i) {
      ask();
      for (int turn = 0; turn < 4; ++turn) advance(Milliseconds(6));
      actions = {};
    }
  });
  EXPECT_EQ(discovery.size(), peers);
  return steps;
}

TEST(DiscoverySteps, FullTable_CostsANewAddressLittle) {
  const uint64_t few = StepsOfNewAddresses(16);
  EXPECT_GE(few, 1000u) << "the code is not counted";
  // Trees of eight more levels.
  EXPECT_LT(StepsOfNewAddresses(4096), 4 * few);
}

}  // namespace
}  // namespace rocegw::cm
