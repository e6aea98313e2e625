// SPDX-License-Identifier: Apache-2.0
// States of endpoints between two gateways: members of a group that drain, or are in error, in the
// middle of messages.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim/endpoint_world.h"
#include "tests/support/random.h"

namespace rocegw::testing::endpoint_states {
namespace {

using endpoint::kGroupPeer;
using endpoint::kMost;
using endpoint::World;
using transport::EndpointState;
using verbs::Dispatch;

using Ids = std::vector<uint32_t>;
constexpr uint8_t kSend = ROCEGW_WR_SEND_WITH_IMM;

TEST(EndpointGroupStates, AMemberGoesIntoErrorInTheMiddleOfAMessage_AnotherGetsTheWholeOfIt) {
  for (const Dispatch dispatch : {Dispatch::kRoundRobin, Dispatch::kDepth}) {
    World world({.each = 2, .group = dispatch});
    world.flushes = true;
    world.Lose(1, SIZE_MAX);
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, kMost, 1));
    world.Run(3);
    world.Move(1, 0, EndpointState::kError);  // the member that was chosen first
    world.script().Calm();
    world.Run(1000);
    EXPECT_TRUE(world.received[1][0].empty());
    EXPECT_EQ(world.Ids(1, 1), Ids{1});
    EXPECT_EQ(world.sent[0][0], (std::vector<std::pair<uint32_t, uint8_t>>{{1, 0}}));
  }
}

TEST(EndpointGroupStates, ADrainingMember_EndsItsMessage_AndOthersGetTheNext) {
  for (const Dispatch dispatch : {Dispatch::kHash, Dispatch::kRoundRobin, Dispatch::kDepth}) {
    World world({.each = 3, .group = dispatch});
    world.Move(1, 1, EndpointState::kDraining);
    world.Move(1, 2, EndpointState::kDraining);
    world.Lose(1, 1);
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, kMost, 1));
    world.Run(3);
    world.Move(1, 0, EndpointState::kDraining);
    world.Move(1, 2, EndpointState::kReady);
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, 2));
    world.Run(1000);
    EXPECT_EQ(world.Ids(1, 0), Ids{1});
    EXPECT_EQ(world.Ids(1, 2), Ids{2});
    EXPECT_TRUE(world.received[1][1].empty());
  }
}

// Members drain and leave, one after the other, under messages over a bad network.
TEST(EndpointGroupStates, MembersThatDrainBeforeTheyLeave_LoseNoMessage) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    World world(
        {.each = 3,
         .mode = random.Coin() ? verbs::ServiceMode::kByInitiator : verbs::ServiceMode::kUnordered,
         .give_up_ms = 1000,
         .group = static_cast<Dispatch>(random.Below(3))},
        seed);
    world.script().Set({.drop = random.Below(3) * 0.05,
                        .delay = random.Below(2) * 0.1,
                        .duplicate = random.Below(2) * 0.05});
    constexpr uint32_t kMessages = 90;
    uint32_t posted = 0;
    size_t leaving = 0;  // the member that drains, or drains next
    bool drains = false;
    for (int step = 0; step < 400000 && world.SentIds(0, 0).size() < kMessages; ++step) {
      if (posted < kMessages && random.Below(4) == 0 &&
          world.Post(0, 0, kGroupPeer, kSend,
                     random.Coin() ? kMost : static_cast<uint32_t>(random.Below(200)), posted))
        ++posted;
      if (leaving < 2 && !drains && posted > 30 * (leaving + 1)) {
        world.Move(1, leaving, EndpointState::kDraining);
        drains = true;
      }
      world.Step();
      if (drains && world.Status(1, leaving).messages == 0) {
        world.gateways().Remove(1, world.end(1, leaving));
        ++leaving;
        drains = false;
      }
    }
    EXPECT_EQ(posted, kMessages);
    EXPECT_EQ(world.SentIds(0, 0).size(), kMessages);
    EXPECT_EQ(leaving, 2u);
    std::multiset<uint32_t> received;
    for (size_t member = 0; member < 3; ++member)
      for (const uint32_t id : world.Ids(1, member)) received.insert(id);
    EXPECT_EQ(received.size(), kMessages);
    for (uint32_t id = 0; id < kMessages; ++id) EXPECT_EQ(received.count(id), 1u) << id;
    for (const auto& [id, status] : world.sent[0][0]) EXPECT_EQ(status, 0) << id;
  }
}

}  // namespace
}  // namespace rocegw::testing::endpoint_states
