// SPDX-License-Identifier: Apache-2.0
// READs, WRITEs and atomics on a channel between two gateways over a network with loss and
// duplicates: WRITEs are placed, READs return what is there, an atomic executes once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

constexpr uint32_t kLength = 100000;
constexpr uint64_t kSource = 0;
constexpr uint64_t kTarget = 0x40000;
constexpr uint64_t kReadInto = 0x80000;
constexpr uint64_t kCounter = 0xC0000;
constexpr uint64_t kResult = 0xC0100;

// Makes a queue pair of the first gateway, connected to one of the other.
RingEnd& AddConnected(GatewayPair& gateways) {
  RingOptions ring;
  ring.handle = 1;
  ring.sq_entries = ring.rq_entries = 16;
  ring.qpn = 100;
  RingEnd& a = gateways.AddQp(0, ring);
  ring.qpn = 200;
  gateways.Connect(a, gateways.AddQp(1, ring), 5);
  return a;
}

// A paced channel sends lost frames when its pace allows, which may be in any step of a worker's
// iteration: also after requests without payload, when the iteration has read all the memory that
// it needed.
TEST(ChannelPace, LostFrames_LeaveAgainWithTheirOwnBytes) {
  constexpr uint32_t kBytes = 4000;
  constexpr uint32_t kSlots = 16;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    TamperScript script(seed);
    script.Set({.drop = 0.1, .mark_ce = 0.5});
    GatewayPairOptions options;
    options.script = &script;
    options.channels = true;
    options.congestion.window_bytes = 1 << 20;
    for (uint32_t& features : options.channel_features) {
      features =
          wire::kOptionChannel | wire::kOptionSelectiveAck | flow::OptionOf(flow::CcKind::kDcqcn);
    }
    GatewayPair gateways(options);
    RingEnd& a = AddConnected(gateways);
    uint32_t posted = 0;
    uint32_t done = 0;
    for (int step = 0; step < 20000 && done < 200; ++step) {
      while (posted - done < kSlots) {
        const uint32_t slot = posted % kSlots;
        const uint64_t at = uint64_t{slot} * kBytes;
        rocegw_send_wqe wqe{};
        const bool adds = slot % 4 == 3;
        wqe.opcode = adds ? ROCEGW_WR_ATOMIC_FETCH_AND_ADD : ROCEGW_WR_RDMA_WRITE;
        wqe.flags = ROCEGW_WQE_SIGNALED;
        wqe.u.rdma.remote_address = GatewayPair::kBase + (adds ? kCounter : kTarget + at);
        wqe.u.rdma.rkey = GatewayPair::kKey[1];
        std::fill_n(gateways.memory(0).begin() + at, kBytes, static_cast<uint8_t>(posted));
        ASSERT_TRUE(a.PostSend(wqe, {{GatewayPair::kBase + (adds ? kResult : at), adds ? 8 : kBytes,
                                      GatewayPair::kKey[0]}}));
        ++posted;
      }
      gateways.Ring(0, a);
      gateways.Step();
      for (const rocegw_cqe& cqe : a.Poll()) {
        ASSERT_EQ(cqe.status, 0);
        const uint32_t slot = done % kSlots;
        const auto there = gateways.memory(1).begin() + kTarget + slot * kBytes;
        if (slot % 4 != 3) {
          ASSERT_TRUE(std::all_of(there, there + kBytes,
                                  [&](uint8_t byte) { return byte == static_cast<uint8_t>(done); }))
              << "WRITE " << done << ", seed " << seed;
        }
        ++done;
      }
    }
    ASSERT_GE(done, 200u);
  }
}

class ChannelVerbs : public ::testing::TestWithParam<double> {};

TEST_P(ChannelVerbs, WriteReadAtomic_AtTheLargestMtu_MoveTheRightBytes) {
  TamperScript script(7);
  script.Set({.drop = GetParam(), .duplicate = GetParam()});
  GatewayPairOptions options;
  options.script = &script;
  options.channels = true;
  GatewayPair gateways(options);
  RingEnd& a = AddConnected(gateways);
  for (uint32_t i = 0; i < kLength; ++i)
    gateways.memory(0)[kSource + i] = static_cast<uint8_t>(i * 7 + i / 251);
  const uint64_t before = 41;
  std::memcpy(&gateways.memory(1)[kCounter], &before, sizeof before);

  const auto post = [&](uint8_t opcode, uint64_t local, uint32_t length, uint64_t remote) {
    rocegw_send_wqe wqe{};
    wqe.opcode = opcode;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase + remote;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    wqe.u.rdma.compare_add = 1;
    const rocegw_sge sge{GatewayPair::kBase + local, length, GatewayPair::kKey[0]};
    ASSERT_TRUE(a.PostSend(wqe, {sge}));
    gateways.Ring(0, a);
  };
  post(ROCEGW_WR_RDMA_WRITE, kSource, kLength, kTarget);
  post(ROCEGW_WR_RDMA_READ, kReadInto, kLength, kTarget);
  for (int i = 0; i < 5; ++i) post(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, kResult + 8 * i, 8, kCounter);

  size_t done = 0;
  for (int step = 0; step < 100000 && done < 7; ++step) {
    gateways.Step();
    for (const rocegw_cqe& cqe : a.Poll()) {
      ASSERT_EQ(cqe.status, 0) << "request " << done;
      ++done;
    }
  }
  ASSERT_EQ(done, 7u);
  EXPECT_EQ(std::memcmp(&gateways.memory(0)[kSource], &gateways.memory(1)[kTarget], kLength), 0);
  EXPECT_EQ(std::memcmp(&gateways.memory(0)[kSource], &gateways.memory(0)[kReadInto], kLength), 0);
  for (uint64_t i = 0; i < 5; ++i) {
    uint64_t original = 0;
    std::memcpy(&original, &gateways.memory(0)[kResult + 8 * i], sizeof original);
    EXPECT_EQ(original, 41 + i);
  }
  uint64_t after = 0;
  std::memcpy(&after, &gateways.memory(1)[kCounter], sizeof after);
  EXPECT_EQ(after, 46u);
  EXPECT_GT(gateways.Count(1, &metrics::WorkerCounters::channel_rx_packets), 24u);
  if (GetParam() == 0) {
    EXPECT_EQ(gateways.Count(0, &metrics::WorkerCounters::channel_resent_packets), 0u);
  } else {
    EXPECT_GT(gateways.Count(0, &metrics::WorkerCounters::channel_resent_packets) +
                  gateways.Count(1, &metrics::WorkerCounters::channel_resent_packets),
              0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Loss, ChannelVerbs, ::testing::Values(0.0, 0.2),
                         [](const auto& parameters) {
                           return parameters.param == 0 ? "none" : "every_fifth";
                         });

// Channel features of the peer, and what a queue pair that was to use a channel reports.
struct WithoutChannel {
  const char* name;
  uint32_t features;
  wire::ChannelReason declined;
};

class ChannelDeclined : public ::testing::TestWithParam<WithoutChannel> {};

TEST_P(ChannelDeclined, RequestsPostedBefore_GoOnAsPlainRoce) {
  GatewayPairOptions options;
  options.channels = true;
  options.channel_features[1] = GetParam().features;
  GatewayPair gateways(options);
  RingEnd& a = AddConnected(gateways);
  for (uint32_t i = 0; i < kLength; ++i)
    gateways.memory(0)[kSource + i] = static_cast<uint8_t>(i * 13 + i / 251);
  const auto post = [&](uint8_t opcode, uint64_t local) {
    rocegw_send_wqe wqe{};
    wqe.opcode = opcode;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase + kTarget;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    const rocegw_sge sge{GatewayPair::kBase + local, kLength, GatewayPair::kKey[0]};
    ASSERT_TRUE(a.PostSend(wqe, {sge}));
    gateways.Ring(0, a);
  };
  post(ROCEGW_WR_RDMA_READ, kResult);
  post(ROCEGW_WR_RDMA_WRITE, kSource);
  post(ROCEGW_WR_RDMA_READ, kReadInto);
  size_t done = 0;
  for (int step = 0; step < 100000 && done < 3; ++step) {
    gateways.Step();
    for (const rocegw_cqe& cqe : a.Poll()) {
      ASSERT_EQ(cqe.status, 0) << "request " << done;
      ++done;
    }
  }
  ASSERT_EQ(done, 3u);
  EXPECT_EQ(std::memcmp(&gateways.memory(0)[kSource], &gateways.memory(1)[kTarget], kLength), 0);
  EXPECT_EQ(std::memcmp(&gateways.memory(0)[kSource], &gateways.memory(0)[kReadInto], kLength), 0);
  EXPECT_EQ(gateways.Count(1, &metrics::WorkerCounters::channel_rx_packets), 0u);
  const worker::ControlReply state =
      gateways.Call(0, 0, {0, worker::QueryQp{SessionId{1}, Qpn{100}}});
  ASSERT_EQ(state.qps.size(), 1u);
  EXPECT_FALSE(state.qps[0].on_channel);
  EXPECT_EQ(state.qps[0].declined, GetParam().declined);
  // The worker asks for new discovery once.
  gateways.TakeNotices();
  const auto changed = std::ranges::count_if(gateways.notices, [](const auto& notice) {
    const auto* peer = std::get_if<worker::PeerChanged>(&notice.body);
    return peer != nullptr && peer->peer == GatewayPair::GidOf(1);
  });
  EXPECT_EQ(changed, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Peers, ChannelDeclined,
    ::testing::Values(WithoutChannel{"silent", 0, wire::ChannelReason::kPathFailed},
                      WithoutChannel{"without_selective_repeat",
                                     wire::kOptionChannel | wire::kOptionCcMask,
                                     wire::ChannelReason::kUnsupported}),
    [](const auto& parameters) { return parameters.param.name; });

TEST(ChannelPaths, ManyQueuePairs_UseThemAll_AndEachKeepsToOne) {
  GatewayPairOptions options;
  options.channels = true;
  options.channel_paths = 3;
  GatewayPair gateways(options);
  constexpr uint32_t kPairs = 12;
  std::vector<RingEnd*> ends;
  for (uint32_t i = 0; i < kPairs; ++i) {
    RingOptions ring;
    ring.handle = 1 + i;
    ring.sq_entries = ring.rq_entries = 16;
    ring.qpn = 100 + i;
    ends.push_back(&gateways.AddQp(0, ring));
    ring.qpn = 200 + i;
    gateways.Connect(*ends[i], gateways.AddQp(1, ring), 5);
  }
  for (RingEnd* end : ends) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase + kTarget;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    ASSERT_TRUE(end->PostSend(wqe, {{GatewayPair::kBase + kSource, 64, GatewayPair::kKey[0]}}));
    gateways.Ring(0, *end);
  }
  for (int step = 0; step < 1000; ++step) gateways.Step();
  for (RingEnd* end : ends) {
    const auto completions = end->Poll();
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_EQ(completions[0].status, 0);
  }
  std::map<Qpn, uint32_t> users;
  for (const worker::QpSnapshot& qp : gateways.Call(0, 0, {0, worker::SnapshotQps{}}).qps) {
    ASSERT_TRUE(qp.on_channel);
    ++users[qp.channel];
  }
  EXPECT_EQ(users.size(), 3u);
  std::set<uint8_t> paths;
  for (const auto& channel : gateways.Call(0, 0, {0, worker::SnapshotChannels{}}).channels) {
    paths.insert(channel.key.path);
    EXPECT_EQ(channel.users, users[channel.number]);
  }
  EXPECT_EQ(paths.size(), 3u);
}

}  // namespace
}  // namespace rocegw::testing
