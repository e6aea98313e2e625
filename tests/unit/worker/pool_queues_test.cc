// SPDX-License-Identifier: Apache-2.0
// Queues of received packets whose pools have used up their time.
#include "gateway/worker/receive/pool_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::worker {
namespace {

std::vector<uint8_t> BytesOf(uint8_t number) { return std::vector<uint8_t>(64, number); }

PoolQueues::Put Push(PoolQueues& queues, const Account& pool, uint8_t number) {
  return queues.Push(pool, {.device = 3, .bytes = BytesOf(number)});
}

TEST(PoolQueues, PacketsOfAPool_StayInOrderInItsOwnQueue) {
  PoolQueues queues;
  const Account one, two;
  EXPECT_EQ(Push(queues, one, 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, two, 9), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, one, 2), PoolQueues::Put::kQueued);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues.at(0).pool, &one);
  ASSERT_EQ(queues.at(0).packets.size(), 2u);
  uint64_t at = queues.at(0).packets.begin();
  for (uint8_t i = 0; i < 2; ++i) {
    const WaitingPacket packet = queues.at(0).packets.Next(at);
    EXPECT_EQ(packet.device, 3u);
    EXPECT_EQ(std::vector<uint8_t>(packet.bytes.begin(), packet.bytes.end()),
              BytesOf(static_cast<uint8_t>(i + 1)));
  }
}

TEST(PoolQueues, FullQueue_RefusesOnlyItsPool) {
  PoolQueues queues;
  const Account one, two;
  const size_t most = WaitingPackets::kBytes / 128;
  for (size_t i = 0; i < most; ++i) ASSERT_EQ(Push(queues, one, 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(queues.Ask(one, 64), PoolQueues::Put::kFull);
  EXPECT_EQ(Push(queues, one, 1), PoolQueues::Put::kFull);
  EXPECT_EQ(queues.Ask(two, 64), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, two, 1), PoolQueues::Put::kQueued);
}

TEST(PoolQueues, QueueIsCrowded_FromAnEighthOn) {
  PoolQueues queues;
  const Account one, two;
  for (size_t i = 1; i < PoolQueues::kCrowdedFrom / 128; ++i) Push(queues, one, 1);
  EXPECT_FALSE(queues.Crowded(one));
  Push(queues, one, 1);
  EXPECT_TRUE(queues.Crowded(one));
  EXPECT_FALSE(queues.Crowded(two));
}

TEST(PoolQueues, NumberOfQueues_IsBounded) {
  PoolQueues queues;
  const std::array<Account, 17> pools;
  for (size_t i = 0; i < 16; ++i) ASSERT_EQ(Push(queues, pools[i], 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(queues.Ask(pools[16], 64), PoolQueues::Put::kNoQueue);
  EXPECT_EQ(Push(queues, pools[16], 1), PoolQueues::Put::kNoQueue);
  EXPECT_EQ(Push(queues, pools[0], 1), PoolQueues::Put::kQueued);
  EXPECT_TRUE(queues.Waits(pools[15]));
  EXPECT_FALSE(queues.Waits(pools[16]));
}

// Each reading of the clock takes this long, so that what a pool is charged does not depend on the
// machine.
int64_t clock_ns = 0;
int64_t reading_ns = 2000;
int64_t ReadClock() { return clock_ns += reading_ns; }

// Two pools on the measured worker of side 0, each with queue pairs to the peer of side 1.
class TwoPools : public ::testing::Test {
 protected:
  using Gateways = testing::GatewayPair;
  static constexpr int kHere = 0, kPeer = 1;
  static constexpr uint32_t kVictim = 1, kFlood = 2;
  struct Ends {
    testing::RingEnd *here, *peer;
  };

  void Start(flow::CcKind congestion, bool channels) {
    reading_ns = 2000;
    testing::GatewayPairOptions options;
    options.shares[kHere] = {&pools_[0], &pools_[1]};
    options.shares[kPeer] = {nullptr, nullptr};
    options.clock = ReadClock;
    options.congestion.kind = congestion;
    options.congestion.window_bytes = 2 << 20;
    options.channels = channels;
    gateways_.emplace(options);
  }
  Ends Connect(uint32_t session, uint32_t handle) {
    testing::RingOptions ring;
    ring.session = session;
    ring.handle = handle;
    ring.qpn = 100 * session + handle;
    const Ends ends{&gateways_->AddQp(kHere, ring), &gateways_->AddQp(kPeer, ring)};
    gateways_->Connect(*ends.here, *ends.peer);
    return ends;
  }
  bool Post(int side, testing::RingEnd& end, uint32_t length = 64, uint32_t offset = 0) {
    const uint32_t session = end.options().session;
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.rkey = Gateways::KeyOf(1 - side, session).value;
    wqe.u.rdma.remote_address = gateways_->Base(1 - side) + offset;
    const uint32_t key = Gateways::KeyOf(side, session).value;
    if (!end.PostSend(wqe, {{gateways_->Base(side) + offset, length, key}})) return false;
    gateways_->Ring(side, end);
    return true;
  }
  // Returns the number of new completions.
  static size_t Take(testing::RingEnd& end) {
    size_t count = 0;
    for (const rocegw_cqe& cqe : end.Poll()) {
      EXPECT_EQ(cqe.status, 0u);
      ++count;
    }
    return count;
  }
  // Runs until the queue pair has that many completions more.
  void RunUntil(testing::RingEnd& end, size_t completions) {
    size_t done = 0;
    for (int step = 0; done < completions && step < 20000; ++step) {
      gateways_->Step();
      done += Take(end);
    }
    EXPECT_EQ(done, completions);
  }
  // Makes the pool of the flood owe more than 100 us, while the other pool is at work. Two WRITEs
  // to the flood's pool are under way then.
  void DriveIntoDebt(const Ends& victim, const Ends& flood) {
    ASSERT_TRUE(Post(kHere, *victim.here));
    ASSERT_TRUE(Post(kPeer, *flood.peer));
    RunUntil(*victim.here, 1);
    RunUntil(*flood.peer, 1);
    reading_ns = 100'000;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(Post(kPeer, *flood.peer));
      for (int step = 0; step < 2; ++step) gateways_->Step(Microseconds(1));
    }
    reading_ns = 1;
  }
  void FloodWithoutLoss(flow::CcKind congestion, bool channels);

  tenant::Share root_{nullptr};
  tenant::Share tenants_[2] = {tenant::Share{&root_}, tenant::Share{&root_}};
  tenant::Share pools_[2] = {tenant::Share{&tenants_[0]}, tenant::Share{&tenants_[1]}};
  std::optional<Gateways> gateways_;
};

// A peer floods one pool with WRITEs while a program of the other sends.
void TwoPools::FloodWithoutLoss(flow::CcKind congestion, bool channels) {
  Start(congestion, channels);
  const Ends victim = Connect(kVictim, 1);
  std::vector<Ends> flood;
  for (uint32_t i = 0; i < 8; ++i) flood.push_back(Connect(kFlood, i + 1));
  size_t sent[2] = {}, done[2] = {};
  for (int step = 0; step < 20000 && (step < 400 || done[0] < sent[0] || done[1] < sent[1]);
       ++step) {
    for (const Ends& ends : flood) {
      while (step < 400 && Post(kPeer, *ends.peer)) ++sent[1];
      done[1] += Take(*ends.peer);
    }
    if (step < 400 && Post(kHere, *victim.here)) ++sent[0];
    done[0] += Take(*victim.here);
    gateways_->Step();
  }
  EXPECT_EQ(done[0], sent[0]);
  EXPECT_EQ(done[1], sent[1]);
  EXPECT_GE(sent[0], 350u);
  EXPECT_GE(sent[1], 500u);
  EXPECT_EQ(gateways_->Count(kHere, &metrics::WorkerCounters::retransmit_packets), 0u);
  EXPECT_EQ(gateways_->Count(kPeer, &metrics::WorkerCounters::channel_resent_packets), 0u);
}

TEST_F(TwoPools, FloodedPool_WaitsAndLosesNothing) {
  FloodWithoutLoss(flow::CcKind::kDcqcn, false);
  // Only packets that waited in a queue have a congestion mark.
  EXPECT_GT(gateways_->Count(kHere, &metrics::WorkerCounters::rx_ce_marked_packets), 0u);
}

TEST_F(TwoPools, FloodedPoolOnAChannel_LosesNothing) {
  FloodWithoutLoss(flow::CcKind::kStatic, true);
}

// Both pools' frames come by one channel.
TEST_F(TwoPools, FrameOfAPoolInDebt_WaitsWithoutTheNextOnesOfItsChannel) {
  constexpr uint32_t kOfFlood = 4096, kOfVictim = 8192;
  Start(flow::CcKind::kStatic, true);
  const Ends victim = Connect(kVictim, 1);
  const Ends flood = Connect(kFlood, 1);
  DriveIntoDebt(victim, flood);
  std::vector<uint8_t>& here = gateways_->memory(kHere);
  gateways_->memory(kPeer)[kOfFlood] = 0xBB;
  gateways_->memory(kPeer)[kOfVictim] = 0xCC;
  ASSERT_TRUE(Post(kPeer, *flood.peer, 64, kOfFlood));
  ASSERT_TRUE(Post(kPeer, *victim.peer, 64, kOfVictim));
  for (int step = 0; step < 100 && here[kOfVictim] == 0; ++step) gateways_->Step(Microseconds(1));
  EXPECT_EQ(here[kOfVictim], 0xCC);
  EXPECT_EQ(here[kOfFlood], 0) << "the frame of the pool in debt was processed as it came";
  RunUntil(*flood.peer, 3);
  EXPECT_EQ(here[kOfFlood], 0xBB);
  // The channel has taken the frame that waits: its sender does not miss it.
  EXPECT_EQ(gateways_->Count(kPeer, &metrics::WorkerCounters::channel_resent_packets), 0u);
}

// More frames come than the queue of their pool holds.
TEST_F(TwoPools, FullQueueOnAChannel_LosesNothing) {
  tenants_[0].SetWeight(100);
  Start(flow::CcKind::kStatic, true);
  const Ends victim = Connect(kVictim, 1);
  const Ends flood = Connect(kFlood, 1);
  DriveIntoDebt(victim, flood);
  reading_ns = 100'000;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Post(kPeer, *flood.peer, 1 << 20));
  size_t done = 0;
  for (int step = 0; done < 6 && step < 20000; ++step) {
    Post(kHere, *victim.here);
    Take(*victim.here);
    gateways_->Step(Microseconds(400));
    done += Take(*flood.peer);
  }
  EXPECT_EQ(done, 6u);
  EXPECT_EQ(gateways_->Drops(kHere, metrics::DropReason::k_handoff_full), 0u);
  EXPECT_EQ(gateways_->Count(kPeer, &metrics::WorkerCounters::channel_resent_packets), 0u);
}

}  // namespace
}  // namespace rocegw::worker
