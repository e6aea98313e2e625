// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hand_over/handed_worker.h"

#include <gtest/gtest.h>

#include "gateway/hand_over/state_stream.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

constexpr SessionId kSession{1};
constexpr Qpn kGroup{0x900};

// Two gateways with a connection by a channel, and a group of endpoints on the first one.
struct World {
  World() : pair(Options()), own(Add(0, 0x100)), peer(Add(1, 0x200)) {
    EXPECT_EQ(
        pair.Call(0, 0, {0, worker::LinkGroup{{.session = kSession, .number = kGroup}}}).error, 0);
    for (const uint32_t qpn : {0x110u, 0x111u}) Add(0, qpn, verbs::QpType::kEndpoint, kGroup.value);
  }
  RingEnd& Add(int side, uint32_t qpn, verbs::QpType type = verbs::QpType::kRc,
               uint32_t group = 0) {
    RingOptions options;
    options.type = type;
    options.qpn = qpn;
    options.handle = qpn & 0xFF ? qpn & 0xFF : 1;
    options.sq_entries = options.rq_entries = 8;
    options.cq_entries = 32;
    options.payload_stride = 64;
    options.group = group;
    return pair.AddQp(side, options);
  }
  static GatewayPairOptions Options() {
    GatewayPairOptions options;
    options.memory_bytes = 1 << 16;
    options.channels = true;
    for (uint32_t& features : options.channel_features)
      features = kAllChannelFeatures | wire::kOptionOrdering | wire::kOptionEndpoints;
    return options;
  }
  worker::Worker& worker() { return pair.worker(0, 0); }

  GatewayPair pair;
  RingEnd& own;
  RingEnd& peer;
};

}  // namespace

std::vector<uint8_t> ExampleOfWorker() {
  World world;
  world.pair.Connect(world.own, world.peer);
  for (uint64_t i = 0; i < 6; ++i) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.wr_id = i;
    const rocegw_sge from{GatewayPair::kBase, 3000, GatewayPair::kKey[0]};
    const rocegw_sge to{GatewayPair::kBase, 4000, GatewayPair::kKey[1]};
    EXPECT_TRUE(world.own.PostSend(wqe, {from}));
    EXPECT_TRUE(i >= 4 || world.peer.PostReceive(i, {to}));
  }
  world.pair.Ring(0, world.own);
  // The first messages are complete, the last ones wait for receives.
  for (int i = 0; i < 20; ++i) world.pair.Step();
  while (!world.worker().Rest(world.pair.now())) {
  }
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, world.pair.now(), versions);
  world.worker().HandOver(out);
  EXPECT_TRUE(out.ok()) << out.failure();
  return bytes;
}

std::string RunWorker(std::span<const uint8_t> state) {
  World world;
  StateStream in(state, world.pair.now());
  world.worker().HandOver(in);
  if (!in.ok()) return in.failure();
  if (!in.at_end()) return "state is longer than what was read";
  for (int i = 0; i < 24; ++i) {
    for (int step = 0; step < 4; ++step) world.pair.Step(Microseconds(int64_t{1} << i));
    world.own.Poll();
  }
  world.pair.Remove(0, world.own);
  return "";
}

}  // namespace rocegw::testing
