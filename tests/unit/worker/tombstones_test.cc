// SPDX-License-Identifier: Apache-2.0
// Tombstones of destroyed endpoints: each pool has its own.
#include "gateway/worker/objects/tombstones.h"

#include <gtest/gtest.h>

#include "gateway/tenant/share.h"
#include "gateway/transport/message/frame_packet.h"
#include "tests/support/qp/endpoint_host.h"

namespace rocegw::testing::tombstones {
namespace {

using worker::Tombstones;

class TombstonesTest : public ::testing::Test {
 protected:
  // Destroys an endpoint of the pool with that slot.
  void Destroy(const tenant::Share* pool, uint32_t slot) {
    endpoint.host().context().handle = {slot, 1};
    stones.Keep(*endpoint.host().qp().endpoint(), pool, now);
  }
  bool Answers(uint32_t slot) {
    endpoint.host().context().handle = {slot, 1};
    const flow::FrameRef lost =
        transport::MakeFrameRef(endpoint.host().context(), wire::FrameKind::kReply, 5, 0);
    wire::ChannelFrame frame;
    return stones.Answer(lost, frame) && frame.kind == wire::FrameKind::kReply;
  }

  EndpointHost endpoint;
  Tombstones stones;
  TimePoint now{Seconds(5).ns};
  // Compared only.
  const tenant::Share* const first = reinterpret_cast<const tenant::Share*>(0x1000);
  const tenant::Share* const second = reinterpret_cast<const tenant::Share*>(0x2000);
};

TEST_F(TombstonesTest, PoolThatDestroysManyEndpoints_LosesItsOwnOnly) {
  Destroy(first, 1);
  for (uint32_t slot = 2; slot < 2 + 3 * Tombstones::kMostOfPool; ++slot) Destroy(second, slot);
  EXPECT_TRUE(Answers(1));
  EXPECT_FALSE(Answers(2));
  EXPECT_TRUE(Answers(1 + 3 * Tombstones::kMostOfPool));
  EXPECT_EQ(stones.size(), 1 + Tombstones::kMostOfPool);
}

TEST_F(TombstonesTest, OldOnes_AreForgotten) {
  Destroy(first, 1);
  now = now + transport::EndpointTombstone::kAge + Seconds(1);
  Destroy(second, 2);
  EXPECT_FALSE(Answers(1));
  EXPECT_TRUE(Answers(2));
  EXPECT_EQ(stones.size(), 1u);
}

}  // namespace
}  // namespace rocegw::testing::tombstones
