// SPDX-License-Identifier: Apache-2.0
// Endpoints: messages between any of them without a connection, over channels that lose, repeat and
// delay packets. Each message is delivered once, whole, to whom it is for; what fails, fails alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "tests/support/gateway_pair.h"
#include "tests/support/random.h"

namespace rocegw::testing::endpoint {
namespace {

using verbs::WcStatus;

constexpr uint32_t kKeyOfEndpoints = 0x4711;
constexpr uint32_t kMost = 6000;  // bytes of a message

// Some endpoints on each of two gateways, each with a peer handle for each one of the other side.
class World {
 public:
  struct Options {
    size_t each = 1;
    verbs::ServiceMode mode = verbs::ServiceMode::kByInitiator;
    uint32_t receives = 16;
    bool any_completion_order = true;
    size_t workers = 1;
  };
  explicit World(const Options& options, uint64_t seed = 1)
      : script_(seed), gateways_(PairOptions(options)) {
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < options.each; ++i) {
        RingOptions ring;
        ring.type = verbs::QpType::kEndpoint;
        ring.handle = static_cast<uint32_t>(i + 1);
        ring.qpn = static_cast<uint32_t>(i % 64 << 18 | (100 + i));
        ring.sq_entries = ring.rq_entries = 16;
        ring.service_mode = options.mode;
        ring.any_completion_order = options.any_completion_order;
        ring.give_up_ms = 50;
        ends_[side].push_back(&gateways_.AddQp(side, ring));
        Bring(side, *ends_[side].back());
      }
    }
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < options.each; ++i) AddPeer(side, HandleOf(i), i, kKeyOfEndpoints);
      for (size_t i = 0; i < options.each; ++i)
        for (uint32_t r = 0; r < options.receives; ++r) PostReceive(side, i);
    }
  }

  static uint32_t HandleOf(size_t endpoint) { return static_cast<uint32_t>(endpoint + 1); }
  void AddPeer(int side, uint32_t handle, size_t endpoint, uint32_t key) {
    const RingEnd& there = *ends_[1 - side][endpoint];
    worker::LinkPeer link{SessionId{1}, handle, {}};
    link.peer.endpoint = Qpn{there.options().qpn};
    link.peer.key = key;
    link.peer.path.source = GatewayPair::GidOf(side);
    link.peer.path.destination = GatewayPair::GidOf(1 - side);
    link.peer.target = gateways_.TargetOf(1 - side, there);
    for (WorkerIndex w = 0; w < workers_; ++w)
      ASSERT_EQ(gateways_.Call(side, w, {0, link}).error, 0);
  }
  // Where an endpoint's memory begins, and what it uses of it.
  static uint64_t InboxAt(size_t endpoint, uint64_t receive) {
    return 0x80000 + (endpoint * 16 + receive % 16) * 0x2000;
  }
  void PostReceive(int side, size_t endpoint) {
    uint64_t& id = receive_ids_[side][endpoint];
    const uint64_t at = GatewayPair::kBase + InboxAt(endpoint, id);
    if (ends_[side][endpoint]->PostReceive(id, {{at, kMost, GatewayPair::kKey[side]}})) ++id;
  }
  bool Post(int side, size_t from, uint32_t peer, uint8_t opcode, uint32_t length, uint32_t id,
            uint16_t flags = 0, uint64_t remote = 0, uint32_t rkey = 0) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = id;
    wqe.opcode = opcode;
    wqe.flags = static_cast<uint16_t>(ROCEGW_WQE_SIGNALED | flags);
    wqe.imm_or_rkey = id;
    wqe.u.rdma.peer = peer;
    wqe.u.rdma.remote_address = GatewayPair::kBase + remote;
    wqe.u.rdma.rkey = rkey != 0 ? rkey : GatewayPair::kKey[1 - side];
    // A slot of the ring is free again when nobody needs these bytes any more.
    const uint64_t at = (from * 16 + ends_[side][from]->control().sq_producer % 16) * 0x2000;
    const RingEnd& end = *ends_[side][from];
    if (ends_[side][from]->control().sq_producer - end.status().sq_released >= 16) return false;
    std::memset(&gateways_.memory(side)[at], static_cast<int>(id * 7 + 1), length);
    if (!ends_[side][from]->PostSend(wqe,
                                     {{GatewayPair::kBase + at, length, GatewayPair::kKey[side]}}))
      return false;
    gateways_.Ring(side, *ends_[side][from]);
    return true;
  }
  static bool Holds(const uint8_t* at, uint32_t length, uint32_t id) {
    return std::all_of(at, at + length,
                       [&](uint8_t byte) { return byte == static_cast<uint8_t>(id * 7 + 1); });
  }
  struct Received {
    uint32_t id;
    uint32_t source;
  };
  void Step() {
    gateways_.Step();
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < ends_[side].size(); ++i) {
        for (const rocegw_cqe& cqe : ends_[side][i]->Poll()) {
          if ((cqe.flags & ROCEGW_CQE_RECEIVE) == 0) {
            sent[side][i].push_back({static_cast<uint32_t>(cqe.wr_id), cqe.status});
            continue;
          }
          EXPECT_EQ(cqe.status, 0);
          if (cqe.opcode == static_cast<uint8_t>(verbs::WcOpcode::kReceive)) {
            EXPECT_TRUE(Holds(&gateways_.memory(side)[InboxAt(i, cqe.wr_id)], cqe.byte_length,
                              cqe.imm_or_rkey))
                << "message " << cqe.imm_or_rkey;
          }
          received[side][i].push_back({cqe.imm_or_rkey, cqe.source_qpn});
          if (repost) PostReceive(side, i);
        }
      }
    }
  }
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  std::vector<uint32_t> Ids(int side, size_t endpoint) {
    std::vector<uint32_t> ids;
    for (const Received& one : received[side][endpoint]) ids.push_back(one.id);
    return ids;
  }
  std::vector<uint32_t> SentIds(int side, size_t endpoint) {
    std::vector<uint32_t> ids;
    for (const auto& [id, status] : sent[side][endpoint]) ids.push_back(id);
    return ids;
  }
  void Lose(size_t skip, size_t times = 1) {
    TamperRule rule;
    rule.direction = 1;
    rule.opcode = 0xC0;
    rule.skip = skip;
    rule.times = times;
    script_.Add(rule);
  }
  GatewayPair& gateways() { return gateways_; }
  TamperScript& script() { return script_; }
  RingEnd& end(int side, size_t endpoint) { return *ends_[side][endpoint]; }

  bool repost = true;
  std::map<size_t, std::vector<Received>> received[2];
  std::map<size_t, std::vector<std::pair<uint32_t, uint8_t>>> sent[2];

 private:
  GatewayPairOptions PairOptions(const Options& options) {
    GatewayPairOptions pair;
    pair.script = &script_;
    pair.channels = true;
    pair.memory_bytes = 2 << 20;
    pair.workers[0] = pair.workers[1] = workers_ = options.workers;
    return pair;
  }
  void Bring(int side, RingEnd& end) {
    using verbs::QpState;
    verbs::QpAttributes want;
    want.qkey = kKeyOfEndpoints;
    const auto worker = static_cast<WorkerIndex>((end.options().qpn >> 18) % workers_);
    const auto step = [&](QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp modify{
          SessionId{1}, Qpn{end.options().qpn}, verbs::kAttrState | mask, want, {}};
      ASSERT_EQ(gateways_.Call(side, worker, {0, modify}).error, 0);
    };
    step(QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(QpState::kRtr, 0);
    step(QpState::kRts, verbs::kAttrSqPsn);
  }

  size_t workers_ = 1;
  TamperScript script_;
  GatewayPair gateways_;
  std::vector<RingEnd*> ends_[2];
  std::map<size_t, uint64_t> receive_ids_[2];
};

using Ids = std::vector<uint32_t>;
constexpr uint8_t kSend = ROCEGW_WR_SEND_WITH_IMM;
constexpr uint8_t kWrite = ROCEGW_WR_RDMA_WRITE;
constexpr uint8_t kWriteImm = ROCEGW_WR_RDMA_WRITE_WITH_IMM;
constexpr uint16_t kNone = ROCEGW_WQE_ORDER_NONE;

TEST(Endpoint, Messages_ReachTheOneTheyName_WithTheirSource) {
  World world({.each = 3});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(2), kSend, 100, 1));
  ASSERT_TRUE(world.Post(0, 1, World::HandleOf(2), kSend, kMost, 2));
  ASSERT_TRUE(world.Post(1, 2, World::HandleOf(0), kSend, 0, 3));
  world.Run(100);
  EXPECT_EQ(world.received[1][2].size(), 2u);
  for (const auto& one : world.received[1][2])
    EXPECT_EQ(one.source, world.end(0, one.id - 1).options().qpn);
  EXPECT_EQ(world.Ids(0, 0), Ids{3});
  EXPECT_TRUE(world.received[1][0].empty());
  EXPECT_EQ(world.sent[0][0], (std::vector<std::pair<uint32_t, uint8_t>>{{1, 0}}));
  EXPECT_EQ(world.sent[0][1], (std::vector<std::pair<uint32_t, uint8_t>>{{2, 0}}));
}

TEST(Endpoint, Write_LandsWhereItSays_WithImmediateItTakesAReceive) {
  World world({});
  ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 5000, 1, 0, 0x1F0000));
  ASSERT_TRUE(world.Post(0, 0, 1, kWriteImm, 300, 2, 0, 0x1F4000));
  world.Run(100);
  EXPECT_TRUE(World::Holds(&world.gateways().memory(1)[0x1F0000], 5000, 1));
  EXPECT_TRUE(World::Holds(&world.gateways().memory(1)[0x1F4000], 300, 2));
  EXPECT_EQ(world.Ids(1, 0), Ids{2});
  EXPECT_EQ(world.SentIds(0, 0), (Ids{1, 2}));
}

TEST(Endpoint, WrongKey_IsRefusedAndCounted_AndNothingElseSuffers) {
  World world({});
  world.AddPeer(0, 50, 0, kKeyOfEndpoints + 1);
  ASSERT_TRUE(world.Post(0, 0, 50, kSend, 100, 1, kNone));
  ASSERT_TRUE(world.Post(0, 0, 50, kSend, kMost, 2, kNone));
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 3, kNone));
  world.Run(100);
  EXPECT_EQ(world.Ids(1, 0), Ids{3});
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status[1], static_cast<uint8_t>(WcStatus::kRemoteAccess));
  EXPECT_EQ(status[2], static_cast<uint8_t>(WcStatus::kRemoteAccess));
  EXPECT_EQ(status[3], 0);
}

TEST(Endpoint, RequestsThatCannotBe_FailAlone) {
  World world({});
  ASSERT_TRUE(world.Post(0, 0, 77, kSend, 100, 1, kNone));                    // no such peer
  ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 100, 2, kNone, 0x1F0000, 0xBAD));   // key
  ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 5000, 3, kNone, (2 << 20) - 100));  // range
  ASSERT_TRUE(world.Post(0, 0, 1, ROCEGW_WR_RDMA_READ, 100, 4, kNone));       // not of endpoints
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 5, kNone));
  world.Run(200);
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status[1], static_cast<uint8_t>(WcStatus::kLocalQpOperation));
  EXPECT_EQ(status[2], static_cast<uint8_t>(WcStatus::kRemoteAccess));
  EXPECT_EQ(status[3], static_cast<uint8_t>(WcStatus::kRemoteAccess));
  EXPECT_EQ(status[4], static_cast<uint8_t>(WcStatus::kLocalQpOperation));
  EXPECT_EQ(status[5], 0);
  EXPECT_EQ(world.Ids(1, 0), Ids{5});
}

TEST(Endpoint, TooLongForItsReceive_FailsAlone_AndTheReceiveServesTheNext) {
  World world({.receives = 1});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, kMost + 8, 1));
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 50, 2));
  world.Run(200);
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status[1], static_cast<uint8_t>(WcStatus::kRemoteInvalidRequest));
  EXPECT_EQ(status[2], 0);
  EXPECT_EQ(world.Ids(1, 0), Ids{2});
}

TEST(Endpoint, NoReceive_IsTriedAgain_AndGivenUpInTheEnd) {
  World world({.each = 2, .receives = 0});
  world.repost = false;
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, kMost, 1, kNone));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 100, 2, kNone));
  world.Run(300);
  EXPECT_TRUE(world.sent[0][0].empty());
  world.PostReceive(1, 0);
  world.Run(6000);
  EXPECT_EQ(world.Ids(1, 0), Ids{1});
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status[1], 0);
  EXPECT_EQ(status[2], static_cast<uint8_t>(WcStatus::kRnrRetryExceeded));
}

TEST(Endpoint, NobodyThere_IsGivenUp) {
  World world({.each = 2});
  world.gateways().Remove(1, world.end(1, 1));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 100, 1, kNone));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 100, 2, kNone));
  world.Run(8000);
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status[1], static_cast<uint8_t>(WcStatus::kRetryExceeded));
  EXPECT_EQ(status[2], 0);
}

TEST(Endpoint, StrongOrder_HoldsForOnePeer_AndNotBetweenPeers) {
  World world({.each = 2});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 10, 0));
  world.Run(50);
  world.received[1].clear();
  world.Lose(0);
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 100, 1));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 100, 2));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 100, 3));
  world.Run(4);
  EXPECT_EQ(world.Ids(1, 1), Ids{3}) << "another peer's does not wait";
  world.Run(300);
  EXPECT_EQ(world.Ids(1, 0), (Ids{1, 2}));
}

TEST(Endpoint, NoOrder_DoesNotWaitForTheHole) {
  World world({.mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 10, 0));
  world.Run(50);
  world.Lose(0);
  for (uint32_t id = 1; id <= 3; ++id) ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, id));
  world.Run(300);
  EXPECT_EQ(world.Ids(1, 0), (Ids{0, 2, 3, 1}));
  EXPECT_EQ(world.SentIds(0, 0), (Ids{0, 2, 3, 1}));
}

TEST(Endpoint, CompletionsInOrder_ComeInOrder) {
  World world({.mode = verbs::ServiceMode::kUnordered, .any_completion_order = false});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 10, 0));
  world.Run(50);
  world.Lose(0);
  for (uint32_t id = 1; id <= 3; ++id) ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, id));
  world.Run(300);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{0, 1, 2, 3}));
}

TEST(Endpoint, ThePeerGatewayIsGone_WhatWasUnderWayFails) {
  World world({});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 10, 0));
  world.Run(50);
  world.Lose(0, SIZE_MAX);
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 1));
  world.Run(9000);
  ASSERT_EQ(world.sent[0][0].size(), 2u);
  EXPECT_EQ(world.sent[0][0][1].second, static_cast<uint8_t>(WcStatus::kRetryExceeded));
}

// A program that posts a receive for each that has completed never finds its queue full.
TEST(Endpoint, OneMessageThatTakesLong_LeavesAllOtherReceivesToOthers) {
  World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 10, 1000));
  world.Run(50);
  world.Lose(1, SIZE_MAX);
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, kMost, 2000));
  world.Run(3);
  world.gateways().Remove(0, world.end(0, 0));
  world.script().Calm();
  for (uint32_t id = 0; id < 100; ++id) {
    ASSERT_TRUE(world.Post(0, 1, World::HandleOf(0), kSend, 50 + id, id));
    world.Run(5);
  }
  world.Run(100);
  EXPECT_EQ(world.received[1][0].size(), 101u);
}

// What a sender leaves behind that has died in the middle of a message keeps no receive from
// others.
TEST(Endpoint, TheSenderDiesInTheMiddle_ItsReceiveServesOthers) {
  World world({.each = 2, .mode = verbs::ServiceMode::kUnordered, .receives = 1});
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, 10, 1));
  world.Run(50);
  world.Lose(1, SIZE_MAX);
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(0), kSend, kMost, 2));
  world.Run(3);
  world.gateways().Remove(0, world.end(0, 0));
  world.script().Calm();
  ASSERT_TRUE(world.Post(0, 1, World::HandleOf(0), kSend, kMost, 3));
  world.Run(4500);
  EXPECT_EQ(world.Ids(1, 0), (Ids{1, 3}));
}

// Everybody talks to everybody, over a bad network, with receives that come late.
TEST(Endpoint, AllToAll_EachMessageOnce) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const bool orders = random.Coin();
    World world({.each = 4,
                 .mode = orders ? verbs::ServiceMode::kByInitiator : verbs::ServiceMode::kUnordered,
                 .receives = 4,
                 .any_completion_order = random.Coin(),
                 .workers = random.Between(1, 2)},
                seed);
    world.script().Set({.drop = random.Below(3) * 0.05,
                        .delay = random.Below(2) * 0.1,
                        .duplicate = random.Below(2) * 0.05});
    world.repost = false;
    constexpr uint32_t kMessages = 160;
    uint32_t posted = 0;
    size_t done = 0;
    std::map<uint32_t, std::pair<int, size_t>> to;
    std::set<uint32_t> ordered;
    for (int step = 0; step < 30000 && done < kMessages; ++step) {
      while (posted < kMessages && random.Below(3) != 0) {
        const int side = random.Coin() ? 1 : 0;
        const size_t from = random.Below(4);
        const size_t target = random.Below(4);
        const auto length = static_cast<uint32_t>(random.Below(kMost + 1));
        const bool order = random.Coin();
        if (!world.Post(side, from, World::HandleOf(target), kSend, length, posted,
                        order ? uint16_t{0} : kNone)) {
          break;
        }
        if (order) ordered.insert(posted);
        to[posted++] = {1 - side, target};
      }
      if (random.Below(3) == 0) world.PostReceive(random.Coin() ? 1 : 0, random.Below(4));
      world.Step();
      done = 0;
      for (int side = 0; side < 2; ++side)
        for (const auto& [endpoint, list] : world.sent[side]) done += list.size();
      if (::testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(done, kMessages);
    world.Run(20);
    std::set<uint32_t> seen;
    uint32_t given_up = 0;
    for (int side = 0; side < 2; ++side) {
      for (const auto& [endpoint, list] : world.sent[side]) {
        for (const auto& [id, status] : list) {
          // A receive may have come too late for it.
          ASSERT_TRUE(status == 0 || status == static_cast<uint8_t>(WcStatus::kRnrRetryExceeded));
          given_up += status != 0 ? 1 : 0;
        }
      }
      for (const auto& [endpoint, list] : world.received[side]) {
        std::map<uint32_t, uint32_t> last;
        for (const auto& one : list) {
          EXPECT_TRUE(seen.insert(one.id).second) << one.id << " came twice";
          EXPECT_EQ(to[one.id], (std::pair<int, size_t>{side, endpoint}));
          // Those of strong order from one endpoint to another keep theirs.
          if (!orders || !ordered.contains(one.id)) continue;
          const auto [known, first] = last.emplace(one.source, one.id);
          EXPECT_TRUE(first || known->second < one.id) << one.id << " after " << known->second;
          known->second = one.id;
        }
      }
    }
    EXPECT_GE(seen.size() + given_up, kMessages);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace rocegw::testing::endpoint
