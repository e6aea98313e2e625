// SPDX-License-Identifier: Apache-2.0
// Queues of received datagrams whose pools have used up their time.
#include "gateway/worker/receive/pool_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::worker {
namespace {

std::vector<uint8_t> BytesOf(uint8_t number) { return std::vector<uint8_t>(64, number); }

PoolQueues::Put Push(PoolQueues& queues, const Account& pool, uint8_t number, uint8_t ecn = 0) {
  const std::vector<uint8_t> bytes = BytesOf(number);
  wire::RxDatagram datagram{{}, bytes};
  datagram.meta.traffic_class = ecn;
  return queues.Push(pool, 3, datagram);
}

TEST(PoolQueues, DatagramsOfAPool_StayInOrderInItsOwnQueue) {
  PoolQueues queues;
  const Account one, two;
  EXPECT_EQ(Push(queues, one, 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, two, 9), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, one, 2), PoolQueues::Put::kQueued);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues.at(0).pool, &one);
  ASSERT_EQ(queues.at(0).datagrams.size(), 2u);
  for (uint8_t i = 0; i < 2; ++i) {
    uint32_t device = 0;
    const wire::RxDatagram datagram = queues.at(0).datagrams.At(i, device);
    EXPECT_EQ(device, 3u);
    EXPECT_EQ(std::vector<uint8_t>(datagram.bytes.begin(), datagram.bytes.end()),
              BytesOf(static_cast<uint8_t>(i + 1)));
  }
}

TEST(PoolQueues, WaitingDatagrams_AreMarkedLikeInASwitch) {
  PoolQueues queues;
  const Account pool;
  Push(queues, pool, 1, wire::kEcnEct0);
  Push(queues, pool, 2, 0);
  uint32_t device = 0;
  EXPECT_EQ(queues.at(0).datagrams.At(0, device).meta.traffic_class, wire::kEcnCe);
  EXPECT_EQ(queues.at(0).datagrams.At(1, device).meta.traffic_class, 0);
}

TEST(PoolQueues, FullQueue_RefusesOnlyItsPool) {
  PoolQueues queues;
  const Account one, two;
  for (uint32_t i = 0; i < HandoffRing::kSlots; ++i)
    ASSERT_EQ(Push(queues, one, 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, one, 1), PoolQueues::Put::kFull);
  EXPECT_EQ(Push(queues, two, 1), PoolQueues::Put::kQueued);
}

TEST(PoolQueues, NumberOfQueues_IsBounded) {
  PoolQueues queues;
  const std::array<Account, 17> pools;
  for (size_t i = 0; i < 16; ++i) ASSERT_EQ(Push(queues, pools[i], 1), PoolQueues::Put::kQueued);
  EXPECT_EQ(Push(queues, pools[16], 1), PoolQueues::Put::kNoQueue);
  EXPECT_EQ(Push(queues, pools[0], 1), PoolQueues::Put::kQueued);
  EXPECT_TRUE(queues.Waits(pools[15]));
  EXPECT_FALSE(queues.Waits(pools[16]));
}

// Each reading of the clock takes this long, so that what a pool is charged does not depend on the
// machine.
int64_t clock_ns = 0;
int64_t ReadClock() { return clock_ns += 2000; }

// Two pools on the measured worker: a peer floods one with WRITEs, a program of the other sends.
TEST(PoolQueues, FloodedPool_WaitsAndLosesNothing) {
  using testing::GatewayPair;
  tenant::Share root{nullptr};
  tenant::Share tenants[2] = {tenant::Share{&root}, tenant::Share{&root}};
  tenant::Share pools[2] = {tenant::Share{&tenants[0]}, tenant::Share{&tenants[1]}};
  testing::GatewayPairOptions options;
  options.shares[0] = {&pools[0], &pools[1]};
  options.shares[1] = {nullptr, nullptr};
  options.clock = ReadClock;
  options.congestion.kind = flow::CcKind::kDcqcn;
  GatewayPair gateways(options);
  struct Ends {
    testing::RingEnd *here, *peer;
  };
  const auto connect = [&](uint32_t session, uint32_t handle) {
    testing::RingOptions ring;
    ring.session = session;
    ring.handle = handle;
    ring.qpn = 100 * session + handle;
    const Ends ends{&gateways.AddQp(0, ring), &gateways.AddQp(1, ring)};
    gateways.Connect(*ends.here, *ends.peer);
    return ends;
  };
  const auto post = [&](int side, testing::RingEnd& end) {
    const uint32_t session = end.options().session;
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.rkey = GatewayPair::KeyOf(1 - side, session).value;
    wqe.u.rdma.remote_address = gateways.Base(1 - side);
    if (!end.PostSend(wqe, {{gateways.Base(side), 64, GatewayPair::KeyOf(side, session).value}}))
      return false;
    gateways.Ring(side, end);
    return true;
  };
  const Ends victim = connect(1, 1);
  std::vector<Ends> flood;
  for (uint32_t i = 0; i < 8; ++i) flood.push_back(connect(2, i + 1));
  size_t sent[2] = {}, done[2] = {};
  for (int step = 0; step < 20000 && (step < 400 || done[0] < sent[0] || done[1] < sent[1]);
       ++step) {
    for (const Ends& ends : flood) {
      while (step < 400 && post(1, *ends.peer)) ++sent[1];
      for (const rocegw_cqe& cqe : ends.peer->Poll()) {
        ASSERT_EQ(cqe.status, 0u);
        ++done[1];
      }
    }
    if (step < 400 && post(0, *victim.here)) ++sent[0];
    for (const rocegw_cqe& cqe : victim.here->Poll()) {
      ASSERT_EQ(cqe.status, 0u);
      ++done[0];
    }
    gateways.Step();
  }
  EXPECT_EQ(done[0], sent[0]);
  EXPECT_EQ(done[1], sent[1]);
  EXPECT_GE(sent[0], 350u);
  EXPECT_GE(sent[1], 500u);
  EXPECT_EQ(gateways.Count(0, &metrics::WorkerCounters::retransmit_packets), 0u);
  // Only packets that waited in a queue have a congestion mark.
  EXPECT_GT(gateways.Count(0, &metrics::WorkerCounters::rx_ce_marked_packets), 0u);
}

}  // namespace
}  // namespace rocegw::worker
