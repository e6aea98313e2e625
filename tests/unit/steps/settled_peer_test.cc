// SPDX-License-Identifier: Apache-2.0
// Steps of the answer of a peer whose connections wait to know whether it is a gateway.
#include <gtest/gtest.h>

#include "tests/support/steps.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::Host;
using testing::V4;

// Returns the steps of discovering 128 peers, while so many connections to another peer exist.
uint64_t StepsToSettlePeers(uint32_t connections) {
  CmConfig config;
  config.discovery.enabled = true;
  Host host(V4(1), 1, config);
  host.Routed(V4(2), testing::kPort);
  for (int ms = 0; ms < 25; ++ms) host.Advance(Milliseconds(1));
  for (uint32_t i = 0; i < connections; ++i) {
    const CmHandle id = host.Routed(V4(2), static_cast<uint16_t>(1 + i));
    EXPECT_EQ(host.Do(id, Connect{Host::Params(0x1000 + i)}), 0);
  }
  for (uint32_t i = 0; i < 128; ++i) {
    const CmHandle id = host.Routed(V4(100 + i), testing::kPort);
    EXPECT_EQ(host.Do(id, Connect{Host::Params(0x100000 + i)}), 0);
  }
  host.actions.mads.clear();
  const uint64_t steps = rocegw::testing::StepsOf([&] {
    for (int ms = 0; ms < 25; ++ms) host.Advance(Milliseconds(1));
  });
  size_t requests = 0;
  for (const SendMad& mad : host.actions.mads) requests += wire::IsVendorMad(mad.bytes) ? 0 : 1;
  EXPECT_GE(requests, 128u);
  return steps;
}

TEST(SettledPeerSteps, ConnectionsToOthers_CostAPeerLittle) {
  const uint64_t few = StepsToSettlePeers(100);
  EXPECT_GE(few, 1000u) << "the code is not counted";
  EXPECT_LT(StepsToSettlePeers(16000), 2 * few);
}

}  // namespace
}  // namespace rocegw::cm
