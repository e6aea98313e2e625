// SPDX-License-Identifier: Apache-2.0
// Steps of an endpoint's requests that wait for others.
#include <gtest/gtest.h>

#include "tests/support/qp/endpoint_host.h"
#include "tests/support/steps.h"

namespace rocegw::testing::endpoint_initiator_steps {
namespace {

// Returns the steps of one Pump with so many requests to a peer that does not answer, and as many
// to another one, which wait for the first of them.
uint64_t StepsOfPump(uint32_t each) {
  RingOptions ring;
  ring.sq_entries = 2 * each;
  ring.service_mode = verbs::ServiceMode::kByInitiator;
  EndpointHost end(ring);
  ScriptedCarrier by;
  end.AddPeer(6, by, wire::Gid::FromV4(0x0A000006));
  for (const uint32_t peer : {EndpointHost::kPeer, 6u}) {
    end.to = peer;
    for (uint32_t i = 0; i < each; ++i) end.Post(ROCEGW_WR_SEND, 0x4000, 8);
  }
  end.Out();
  return StepsOf([&] { end.Out(); });
}

TEST(EndpointInitiatorSteps, DeepQueue_CostsEachRequestTheSame) {
  const uint64_t few = StepsOfPump(128);
  EXPECT_GE(few, 128u) << "the code is not counted";
  EXPECT_LT(StepsOfPump(4096), 32 * 2 * few);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_initiator_steps
