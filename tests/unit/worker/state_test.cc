// SPDX-License-Identifier: Apache-2.0
// Memory of established queue pairs and channels in a real worker: grows with the number of queue
// pairs plus peers, within limits.
#include <gtest/gtest.h>

#include "tests/support/session/state_world.h"

namespace rocegw::testing::state {
namespace {

// Limits for a thousand of each in KiB; together at most 256.
constexpr size_t kChannelBytes = 158;
constexpr size_t kEndpointBytes = 92;
static_assert(kChannelBytes + kEndpointBytes <= 256);

struct Held {
  size_t channels = 0;
  size_t channel_bytes = 0;  // including lookup tables
  size_t endpoint_bytes = 0;
  size_t awake = 0;
  size_t in_flight = 0;
  size_t pooled = 0;
};

Held HeldBy(uint32_t endpoints, uint32_t peers) {
  StateWorld world(endpoints, peers);
  for (uint32_t i = 0; i < endpoints; ++i) EXPECT_TRUE(world.Connect(i, i % peers));
  EXPECT_TRUE(world.Exchange(0, endpoints));
  world.Rest(Seconds(2));
  const worker::Worker::StateBytes state = world.gateway().MeasureState();
  EXPECT_EQ(state.endpoints, endpoints);
  EXPECT_EQ(state.channels.channels, peers);
  return {state.channels.channels,  state.channels.objects + state.channels.tables,
          state.endpoint_bytes,     state.channels.awake,
          state.channels.in_flight, state.channels.pooled};
}

TEST(StateBytes, ManyQueuePairsOnOneChannel_TheChannelStaysWhatItIs) {
  const Held one = HeldBy(1, 1);
  const Held many = HeldBy(1024, 1);
  EXPECT_EQ(many.channels, 1u);
  // Lists of due channels take a few bytes more.
  EXPECT_LE(many.channel_bytes, one.channel_bytes + 64);
  EXPECT_EQ(many.endpoint_bytes, 1024 * one.endpoint_bytes);
}

TEST(StateBytes, Idle_NothingIsHeldForPacketsInFlight) {
  const Held held = HeldBy(256, 64);
  EXPECT_EQ(held.awake, 0u);
  EXPECT_EQ(held.in_flight, 0u);
  // A few blocks, whatever the number of channels.
  EXPECT_LE(held.pooled, 16 * (sizeof(flow::RecordChunk) + sizeof(flow::LedgerPage) +
                               sizeof(channel::AwakeChannel)));
}

TEST(StateBytes, QueuePairsPlusPeers_NotTheirProduct) {
  const Held endpoints = HeldBy(512, 1);
  const Held peers = HeldBy(128, 128);
  const Held both = HeldBy(512, 128);
  EXPECT_LE(both.channel_bytes, peers.channel_bytes + 64);
  EXPECT_EQ(both.endpoint_bytes, endpoints.endpoint_bytes);
}

// A host with 512 peers and 20 threads per peer: SRC's table needs 0.190 MB (Scalable Reliable
// Connection, APNet 2025, table 1), so channels may need as much. The threads share the channels of
// a pair of hosts.
TEST(StateBytes, FiveHundredTwelvePeers_ChannelsTakeLessThan190KB) {
  const Held held = HeldBy(512, 512);
  EXPECT_LE(held.channel_bytes, 190'000u);
}

TEST(StateBytes, EachWithinItsBound) {
  const Held held = HeldBy(1024, 1024);
  RecordProperty("channel_bytes", static_cast<int>(held.channel_bytes / 1024));
  RecordProperty("endpoint_bytes", static_cast<int>(held.endpoint_bytes / 1024));
  EXPECT_LE(held.channel_bytes / 1024, kChannelBytes);
  EXPECT_LE(held.endpoint_bytes / 1024, kEndpointBytes);
}

}  // namespace
}  // namespace rocegw::testing::state
