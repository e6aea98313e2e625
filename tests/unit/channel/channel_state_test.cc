// SPDX-License-Identifier: Apache-2.0
// Channel sets that are handed over: the successor goes on as the original would have, and refuses
// malformed state.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/channel/channel_pair.h"

namespace rocegw::channel {
namespace {

using testing::ChannelEnd;
using testing::ChannelPacket;
using testing::ChannelPair;

constexpr uint32_t kQueuePairs = 6;

// Two gateways, some queue pairs that send on three channels, and a network that loses and
// reorders.
class World {
 public:
  explicit World(uint32_t seed) : random_(seed) {
    for (int side = 0; side < 2; ++side)
      Use(side, pair_.ends[side]->Reach(*pair_.ends[1 - side], pair_.now));
    Use(0, pair_.a().Reach(pair_.b(), pair_.now, 8));
    pair_.Settle();
  }

  void Step() {
    switch (Draw(6)) {
      case 0:
        pair_.Advance(Microseconds(Draw(200)), Lossy());
        break;
      case 1:
        if (Draw(20) == 0) pair_.Advance(Seconds(2), Lossy());
        break;
      case 2:
        pair_.Settle(Lossy());
        break;
      default:
        SendSome();
    }
  }
  void SendSome() {
    for (uint32_t left = 1 + Draw(30); left != 0; --left) {
      const uint32_t side = Draw(2);
      const Frame frame{side, Draw(kQueuePairs), ++message_};
      sent_[side].push_back(frame.message);
      if (!TrySend(frame)) waiting_.push_back(frame);
    }
  }
  void HandOver(uint32_t side) {
    ChannelEnd& end = *pair_.ends[side];
    const char* const failure = end.TakeOver(end.Written(pair_.now), pair_.now);
    EXPECT_EQ(failure, nullptr) << failure;
    ++hand_overs;
  }
  void Finish() {
    pair_.Advance(Seconds(3));
    for (int i = 0; i < 200 && !waiting_.empty(); ++i) {
      std::erase_if(waiting_, [&](const Frame& frame) { return TrySend(frame); });
      pair_.Advance(Milliseconds(50));
    }
    EXPECT_TRUE(waiting_.empty());
    pair_.Advance(Seconds(3));
  }

  // Checks that each frame has arrived once.
  void CheckArrivals() {
    for (int side = 0; side < 2; ++side) {
      std::vector<uint32_t> arrived = pair_.ends[1 - side]->delivered;
      std::sort(arrived.begin(), arrived.end());
      EXPECT_EQ(arrived, sent_[side]);
    }
  }
  std::vector<uint8_t> StateOf(int side) { return pair_.ends[side]->Written(pair_.now); }
  ChannelPair& pair() { return pair_; }

  int hand_overs = 0;

 private:
  struct Frame {
    uint32_t side;
    uint32_t qp;
    uint32_t message;
  };
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  std::function<bool(const ChannelPacket&)> Lossy() {
    return [this](const ChannelPacket&) { return Draw(12) == 0; };
  }
  void Use(int side, Channel* channel) {
    ASSERT_NE(channel, nullptr);
    numbers_[side].push_back(channel->number());
    pair_.ends[side]->Hold(channel);
  }
  bool TrySend(const Frame& frame) {
    ChannelEnd& end = *pair_.ends[frame.side];
    // A queue pair that has had its turn tries again.
    for (const uint32_t turn : end.turns) end.Place(turn).waiting = false;
    end.turns.clear();
    const auto& numbers = numbers_[frame.side];
    Channel* const channel = end.set.Find(numbers[frame.qp % numbers.size()]);
    if (channel == nullptr) return false;
    return end.Send(*channel, frame.message, pair_.now, frame.qp, frame.qp % 2, 1000);
  }

  std::mt19937 random_;
  ChannelPair pair_;
  std::vector<Qpn> numbers_[2];
  std::vector<uint32_t> sent_[2];
  std::vector<Frame> waiting_;
  uint32_t message_ = 0;
};

TEST(ChannelState, HandedOverAtRandomMoments_EveryFrameArrivesOnce) {
  int hand_overs = 0;
  for (uint32_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    for (int step = 0; step < 120; ++step) {
      if (step % 3 == 0) world.HandOver(seed % 2);
      world.Step();
    }
    world.Finish();
    world.CheckArrivals();
    hand_overs += world.hand_overs;
  }
  EXPECT_GT(hand_overs, 1000);
}

// A hand-over is no reason to send anything again.
TEST(ChannelState, HandedOverInTheMiddleOfABurst_SendsNothingAgain) {
  World world(1);
  for (int i = 0; i < 50; ++i) {
    world.SendSome();
    world.HandOver(0);
    world.HandOver(1);
    world.pair().Settle();
  }
  world.Finish();
  world.CheckArrivals();
  EXPECT_EQ(world.pair().a().counters.channel_resent_packets.Read(), 0u);
  EXPECT_EQ(world.pair().b().counters.channel_resent_packets.Read(), 0u);
}

TEST(ChannelState, WrittenAgain_IsTheSame) {
  World world(5);
  for (int step = 0; step < 60; ++step) {
    world.Step();
    ChannelEnd& end = world.pair().a();
    const std::vector<uint8_t> bytes = end.Written(world.pair().now);
    ASSERT_EQ(end.TakeOver(bytes, world.pair().now), nullptr);
    EXPECT_EQ(end.Written(world.pair().now), bytes);
  }
}

// Whatever is accepted must also be safe to run.
TEST(ChannelState, WithDamage_IsRefusedOrRuns) {
  int refused = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    World world(seed % 8);
    for (uint32_t step = random() % 60; step != 0; --step) world.Step();
    std::vector<uint8_t> bytes = world.StateOf(0);
    for (uint32_t left = 1 + random() % 3; left != 0; --left)
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    if (world.pair().a().TakeOver(bytes, world.pair().now) != nullptr) {
      ++refused;
      continue;
    }
    world.pair().Advance(Milliseconds(100));
    world.pair().Advance(Seconds(20));
  }
  EXPECT_GT(refused, 100);
}

TEST(ChannelState, OfAnotherInstance_IsRefused) {
  ChannelPair pair;
  pair.Open();
  const std::vector<uint8_t> bytes = pair.a().Written(pair.now);
  pair.a().options.instance += 1;
  EXPECT_STREQ(pair.a().TakeOver(bytes, pair.now), "channels of another worker");
}

TEST(ChannelState, FramesThatDoNotFitThePort_AreRefused) {
  ChannelPair pair;
  pair.Open();
  const std::vector<uint8_t> bytes = pair.a().Written(pair.now);
  pair.a().max_datagram = 1500;
  EXPECT_STREQ(pair.a().TakeOver(bytes, pair.now), "a channel's frames do not fit its port");
}

// A peer must not get a tagged packet accepted twice because the gateway was replaced.
TEST(ChannelState, SequenceOfTaggedPackets_GoesOn) {
  ChannelPair pair;
  FleetKeys keys;
  keys.count = 1;
  keys.keys[0] = {1, 2};
  for (const auto& end : pair.ends) end->set.SetKeys(keys);
  pair.a().Hold(pair.a().set.Reach(
      [&] {
        verbs::ChannelTarget target = ChannelEnd::TargetOf(pair.b());
        target.features = wire::kOptionAuthentication;
        return target;
      }(),
      pair.a().PathTo(pair.b(), 0), 77, 0, pair.now));
  pair.a().Turn(pair.now);
  ASSERT_FALSE(pair.a().sent.empty());
  const ChannelPacket opening = pair.a().sent.front();
  ASSERT_TRUE(opening.Control().tagged);
  pair.Settle();
  ASSERT_EQ(pair.b().TakeOver(pair.b().Written(pair.now), pair.now), nullptr);
  pair.b().set.SetKeys(keys);
  EXPECT_EQ(pair.b().Receive(opening, pair.now), metrics::DropReason::k_channel_replayed);
}

}  // namespace
}  // namespace rocegw::channel
