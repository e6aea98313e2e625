// SPDX-License-Identifier: Apache-2.0
// Endpoints: messages between any of them without a connection, over channels with loss, duplicates
// and delay. Each message is delivered once, whole, to its destination, and a failure affects one
// message only.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "tests/sim/endpoint_world.h"
#include "tests/support/random.h"

namespace rocegw::testing::endpoint {
namespace {

using verbs::WcStatus;

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
  ASSERT_TRUE(
      world.Post(0, 0, 1, ROCEGW_WR_SEND_WITH_INV, 100, 4, kNone));  // not allowed for endpoints
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

// The receiver destroys its endpoint as soon as it has the message.
TEST(Endpoint, TheReceiverEndsAtOnce_ItsAnswerIsLost_AndTheSenderLearnsTheTruth) {
  for (const bool arrives : {true, false}) {
    World world({.each = 2, .mode = verbs::ServiceMode::kUnordered});
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 10, 1));
    world.Run(50);
    TamperRule answers;
    answers.direction = 0;
    answers.opcode = 0xC0;
    world.script().Add(answers);
    if (!arrives) world.Lose(0, SIZE_MAX);
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, kMost, 2));
    ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kWrite, 100, 3, 0, 0x1F0000, 0xBAD));
    world.Run(20);
    world.gateways().Remove(1, world.end(1, 1));
    world.Run(100);
    world.script().Calm();
    world.Run(8000);
    const std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
    const auto lost = static_cast<uint8_t>(WcStatus::kRetryExceeded);
    const auto denied = static_cast<uint8_t>(WcStatus::kRemoteAccess);
    EXPECT_EQ(status, arrives ? (std::map<uint32_t, uint8_t>{{1, 0}, {2, 0}, {3, denied}})
                              : (std::map<uint32_t, uint8_t>{{1, 0}, {2, lost}, {3, lost}}));
    EXPECT_EQ(world.Ids(1, 1), arrives ? (Ids{1, 2}) : Ids{1});
  }
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

TEST(Endpoint, NoOrder_MessagesSpreadOverThePaths_OrderedOnesDoNot) {
  for (const bool ordered : {false, true}) {
    World world({.mode = verbs::ServiceMode::kByInitiator, .paths = 3});
    world.Lose(0, 12);
    for (uint32_t id = 1; id <= 9; ++id)
      ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 300, id, ordered ? uint16_t{0} : kNone, 0x1F0000));
    world.Run(2000);
    ASSERT_EQ(world.sent[0][0].size(), 9u);
    for (const auto& [id, status] : world.sent[0][0]) EXPECT_EQ(status, 0);
    EXPECT_EQ(world.gateways().Count(0, &metrics::WorkerCounters::channel_open_events),
              ordered ? 1u : 3u);
  }
}

// The payload of one message, in six frames, may be in flight, over all paths together.
TEST(Endpoint, WindowOfItsPool_IsKept_AndEverythingComesInTheEnd) {
  const auto left_before_any_arrived = [](uint32_t window) {
    World world({.mode = verbs::ServiceMode::kUnordered, .paths = 3, .window_bytes = window});
    for (uint32_t id = 0; id < 3; ++id)
      EXPECT_TRUE(world.Post(0, 0, 1, kWrite, 10, id, 0, 0x1F0000));
    world.Run(100);
    EXPECT_EQ(world.sent[0][0].size(), 3u) << "channels are open";
    const auto left = [&] {
      return world.gateways().Count(0, &metrics::WorkerCounters::request_tx_packets);
    };
    const uint64_t before = left();
    world.Lose(0, SIZE_MAX);
    for (uint32_t id = 3; id < 9; ++id)
      EXPECT_TRUE(world.Post(0, 0, 1, kWrite, kMost, id, 0, 0x1F0000));
    world.Run(20);
    const uint64_t alone = left() - before;
    world.script().Calm();
    world.Run(2000);
    EXPECT_EQ(world.sent[0][0].size(), 9u);
    for (const auto& [id, status] : world.sent[0][0]) EXPECT_EQ(status, 0) << id;
    return alone;
  };
  EXPECT_EQ(left_before_any_arrived(0), 36u);
  EXPECT_EQ(left_before_any_arrived(kMost), 6u);
}

// Copier that executes at once; its memory reads as zeros and ends at `end`.
class ZerosUpTo final : public memory::Copier {
 public:
  explicit ZerosUpTo(uint64_t end) : end_(end) {}
  bool Submit(WorkerIndex, std::unique_ptr<memory::Batch>& batch) override {
    for (uint32_t i = 0; i < batch->ops.size(); ++i) {
      const memory::MemoryOp& op = batch->ops[i];
      if (op.address + op.length > end_) {
        batch->failed.push_back(i);
      } else if (op.kind == memory::OpKind::kRead) {
        std::fill_n(op.buffer, op.length, uint8_t{0});
      }
    }
    done_.push_back(std::move(batch));
    return true;
  }
  std::unique_ptr<memory::Batch> Collect(WorkerIndex) override {
    if (done_.empty()) return nullptr;
    std::unique_ptr<memory::Batch> batch = std::move(done_.front());
    done_.pop_front();
    return batch;
  }
  void Stop() override {}

 private:
  const uint64_t end_;
  std::deque<std::unique_ptr<memory::Batch>> done_;
};

TEST(Endpoint, WindowOfItsPool_IsNotUsedUpByWhatHasNeverLeft) {
  // The memory ends before the second slot of the ring.
  ZerosUpTo copier(GatewayPair::kBase + 0x2000);
  World world({.mode = verbs::ServiceMode::kUnordered, .window_bytes = 4096, .copier = &copier});
  for (uint32_t id = 0; id < 64; ++id) {
    ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 1000, id, 0, 0x1F0000));
    world.Run(30);
    ASSERT_EQ(world.sent[0][0].size(), id + 1);
    EXPECT_EQ(world.sent[0][0][id].second,
              id % 16 == 0 ? 0 : static_cast<uint8_t>(WcStatus::kLocalProtection));
  }
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

// A program that posts a receive after each completion never finds its queue full.
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

// A sender that dies in the middle of a message must not hold its receive for ever.
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

using verbs::Dispatch;

size_t CountOf(World& world, size_t member) { return world.received[1][member].size(); }

TEST(EndpointGroup, Hash_EachSenderHasOneMember_AndOnlyThoseOfALeaverMove) {
  World world({.each = 12, .group = Dispatch::kHash});
  const auto round = [&](uint32_t first) {
    for (size_t from = 0; from < 12; ++from)
      for (uint32_t i = 0; i < 3; ++i)
        ASSERT_TRUE(world.Post(0, from, kGroupPeer, kSend, i == 1 ? kMost : 60,
                               first + static_cast<uint32_t>(from) * 3 + i));
    world.Run(300);
  };
  const auto homes = [&] {
    std::map<uint32_t, std::set<size_t>> members;
    for (size_t m = 0; m < 12; ++m)
      for (const auto& one : world.received[1][m]) members[one.source].insert(m);
    return members;
  };
  round(0);
  const auto before = homes();
  ASSERT_EQ(before.size(), 12u);
  std::set<size_t> used;
  for (const auto& [source, members] : before) {
    EXPECT_EQ(members.size(), 1u) << "of sender " << source;
    used.insert(*members.begin());
  }
  EXPECT_GE(used.size(), 4u);
  // In order per sender, as the sender asked.
  for (size_t m = 0; m < 12; ++m) {
    std::map<uint32_t, uint32_t> last;
    for (const auto& one : world.received[1][m]) {
      EXPECT_TRUE(!last.contains(one.source) || last[one.source] < one.id);
      last[one.source] = one.id;
    }
  }
  const size_t leaver = *used.begin();
  world.gateways().Remove(1, world.end(1, leaver));
  world.received[1].clear();
  round(100);
  const auto after = homes();
  ASSERT_EQ(after.size(), 12u);
  for (const auto& [source, members] : after) {
    ASSERT_EQ(members.size(), 1u);
    const size_t was = *before.at(source).begin();
    EXPECT_EQ(members.contains(was), was != leaver);
  }
}

TEST(EndpointGroup, RoundRobin_OneAfterTheOther) {
  World world({.each = 3, .group = Dispatch::kRoundRobin});
  for (uint32_t id = 0; id < 12; ++id)
    ASSERT_TRUE(world.Post(0, id % 2, kGroupPeer, kSend, id % 3 == 0 ? kMost : 60, id));
  world.Run(300);
  for (size_t m = 0; m < 3; ++m) EXPECT_EQ(CountOf(world, m), 4u) << "member " << m;
}

// Copier that executes at once, in the memory of one side.
class PromptCopier final : public memory::Copier {
 public:
  bool Submit(WorkerIndex, std::unique_ptr<memory::Batch>& batch) override {
    for (const memory::MemoryOp& op : batch->ops) {
      uint8_t* const at = &world->gateways().memory(1)[op.address - GatewayPair::kBase];
      if (op.kind == memory::OpKind::kRead) std::copy_n(at, op.length, op.buffer);
      if (op.kind == memory::OpKind::kWrite) std::copy_n(op.buffer, op.length, at);
    }
    done_.push_back(std::move(batch));
    return true;
  }
  std::unique_ptr<memory::Batch> Collect(WorkerIndex) override {
    if (done_.empty()) return nullptr;
    std::unique_ptr<memory::Batch> batch = std::move(done_.front());
    done_.pop_front();
    return batch;
  }
  void Stop() override {}

  World* world = nullptr;

 private:
  std::deque<std::unique_ptr<memory::Batch>> done_;
};

// The members of an untrusted program know a message by their own carrier for its channel.
TEST(EndpointGroup, OfAnUntrustedProgram_GivesAllFramesOfAMessageToOneMember) {
  PromptCopier copier;
  World world({.each = 3, .peer_copier = &copier, .group = Dispatch::kRoundRobin});
  copier.world = &world;
  for (uint32_t id = 0; id < 12; ++id)
    ASSERT_TRUE(world.Post(0, id % 2, kGroupPeer, kSend, id % 3 == 0 ? kMost : 60, id));
  world.Run(300);
  for (size_t m = 0; m < 3; ++m) EXPECT_EQ(CountOf(world, m), 4u) << "member " << m;
}

TEST(EndpointGroup, Depth_TheOneWithMostReceives) {
  World world({.each = 3, .receives = 2, .group = Dispatch::kDepth});
  world.repost = false;
  for (int i = 0; i < 8; ++i) world.PostReceive(1, 1);
  for (uint32_t id = 0; id < 8; ++id) ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, id));
  world.Run(300);
  EXPECT_EQ(CountOf(world, 1), 8u);
  // Members with equal numbers of receives share the messages.
  for (uint32_t id = 8; id < 14; ++id) ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, id));
  world.Run(300);
  for (size_t m = 0; m < 3; ++m) EXPECT_EQ(CountOf(world, m), m == 1 ? 10u : 2u);
}

TEST(EndpointGroup, WithoutReceives_IsPassedOver_AndRefusedOnlyWhenAllAre) {
  for (const Dispatch dispatch : {Dispatch::kRoundRobin, Dispatch::kDepth}) {
    World world({.each = 3, .receives = 0, .group = dispatch});
    world.repost = false;
    for (int i = 0; i < 8; ++i) world.PostReceive(1, 2);
    for (uint32_t id = 0; id < 8; ++id)
      ASSERT_TRUE(world.Post(0, id % 2, kGroupPeer, kSend, id == 3 ? kMost : 60, id));
    world.Run(100);
    EXPECT_EQ(CountOf(world, 2), 8u);
    EXPECT_EQ(world.gateways().Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u);
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, 8));
    world.Run(100);
    EXPECT_GT(world.gateways().Count(1, &metrics::WorkerCounters::rnr_tx_packets), 0u);
    world.PostReceive(1, 0);
    world.Run(300);
    EXPECT_EQ(CountOf(world, 0), 1u);
  }
}

TEST(EndpointGroup, Hash_WhoseMemberHasNoReceives_Waits_AndOthersDoNot) {
  World world({.each = 6, .group = Dispatch::kHash});
  world.repost = false;
  for (size_t from = 0; from < 6; ++from)
    ASSERT_TRUE(world.Post(0, from, kGroupPeer, kSend, 60, static_cast<uint32_t>(from)));
  world.Run(100);
  const auto home = [&](size_t from) {
    size_t member = 0;
    while (member < 6 && std::none_of(world.received[1][member].begin(),
                                      world.received[1][member].end(), [&](const auto& one) {
                                        return one.source == world.end(0, from).options().qpn;
                                      }))
      ++member;
    return member;
  };
  size_t other = 1;
  while (other < 6 && home(other) == home(0)) ++other;
  ASSERT_LT(other, 6u);
  const size_t full = home(0);
  const size_t free = home(other);
  while (CountOf(world, full) < 16) {
    ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, 100));
    world.Run(30);
  }
  ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, 200));
  ASSERT_TRUE(world.Post(0, other, kGroupPeer, kSend, 60, 201));
  world.Run(100);
  EXPECT_EQ(world.Ids(1, free).back(), 201u);
  EXPECT_EQ(CountOf(world, full), 16u);
  world.PostReceive(1, full);
  world.Run(1000);
  EXPECT_EQ(world.Ids(1, full).back(), 200u);
}

TEST(EndpointGroup, AMemberLeavesInTheMiddleOfAMessage_AnotherGetsTheWholeOfIt) {
  World world({.each = 2, .group = Dispatch::kRoundRobin});
  world.Lose(1, SIZE_MAX);
  ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, kMost, 1));
  world.Run(3);
  world.gateways().Remove(1, world.end(1, 0));  // the member that was chosen first
  world.script().Calm();
  world.Run(1000);
  EXPECT_TRUE(world.received[1][0].empty());
  EXPECT_EQ(world.Ids(1, 1), Ids{1});
  EXPECT_EQ(world.sent[0][0], (std::vector<std::pair<uint32_t, uint8_t>>{{1, 0}}));
}

TEST(EndpointGroup, KeyOfTheGroup_AndNobodyInIt) {
  World world({.each = 2, .group = Dispatch::kRoundRobin});
  world.AddGroup(kGroupPeer + 1, kKeyOfEndpoints);
  ASSERT_TRUE(world.Post(0, 0, kGroupPeer + 1, kSend, 60, 1, kNone));
  ASSERT_TRUE(world.Post(0, 0, World::HandleOf(1), kSend, 60, 2, kNone));  // to a member directly
  ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kWriteImm, 300, 3, kNone, 0x1F0000));
  world.Run(200);
  std::map<uint32_t, uint8_t> status(world.sent[0][0].begin(), world.sent[0][0].end());
  EXPECT_EQ(status, (std::map<uint32_t, uint8_t>{
                        {1, static_cast<uint8_t>(WcStatus::kRemoteAccess)}, {2, 0}, {3, 0}}));
  EXPECT_TRUE(World::Holds(&world.gateways().memory(1)[0x1F0000], 300, 3));
  for (size_t m = 0; m < 2; ++m) world.gateways().Remove(1, world.end(1, m));
  ASSERT_TRUE(world.Post(0, 0, kGroupPeer, kSend, 60, 4, kNone));
  world.Run(8000);
  EXPECT_EQ(world.sent[0][0].back(),
            (std::pair<uint32_t, uint8_t>{4, static_cast<uint8_t>(WcStatus::kRetryExceeded)}));
}

// Over a bad network, with late receives and a member that leaves.
TEST(EndpointGroup, EachMessageOnce_WhateverHappens) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    World world(
        {.each = 4,
         .mode = random.Coin() ? verbs::ServiceMode::kByInitiator : verbs::ServiceMode::kUnordered,
         .receives = 4,
         .group = static_cast<Dispatch>(random.Below(3))},
        seed);
    world.script().Set({.drop = random.Below(3) * 0.05,
                        .delay = random.Below(2) * 0.1,
                        .duplicate = random.Below(2) * 0.05});
    world.repost = false;
    constexpr uint32_t kMessages = 120;
    const uint32_t leaves_at = 30 + static_cast<uint32_t>(random.Below(60));
    bool left = false;
    uint32_t posted = 0;
    std::map<uint32_t, uint8_t> ended;
    for (int step = 0; step < 30000 && ended.size() < kMessages; ++step) {
      while (posted < kMessages && random.Below(3) != 0) {
        const auto length = static_cast<uint32_t>(random.Below(kMost + 1));
        if (!world.Post(0, random.Below(4), kGroupPeer, kSend, length, posted)) break;
        ++posted;
      }
      if (posted >= leaves_at && !left) {
        world.gateways().Remove(1, world.end(1, 0));
        left = true;
      }
      if (random.Below(3) == 0) world.PostReceive(1, (left ? 1 : 0) + random.Below(left ? 3 : 4));
      world.Step();
      for (auto& [endpoint, list] : world.sent[0]) {
        for (const auto& [id, status] : list)
          EXPECT_TRUE(ended.emplace(id, status).second) << id << " ended twice";
        list.clear();
      }
      if (::testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(ended.size(), kMessages);
    world.Run(20);
    std::set<uint32_t> seen;
    for (size_t m = 0; m < 4; ++m)
      for (const auto& one : world.received[1][m])
        EXPECT_TRUE(seen.insert(one.id).second) << one.id << " came twice";
    for (const auto& [id, status] : ended) {
      EXPECT_TRUE(status != 0 || seen.contains(id)) << id << " is lost";
      // Messages that the leaving member had received without a reply may have failed.
      EXPECT_TRUE(status == 0 || status == static_cast<uint8_t>(WcStatus::kRnrRetryExceeded) ||
                  (left && status == static_cast<uint8_t>(WcStatus::kRetryExceeded)));
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// All endpoints send to all others over a bad network, with late receives.
TEST(Endpoint, AllToAll_EachMessageOnce) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    const bool orders = random.Coin();
    World world({.each = 4,
                 .mode = orders ? verbs::ServiceMode::kByInitiator : verbs::ServiceMode::kUnordered,
                 .receives = 4,
                 .any_completion_order = random.Coin(),
                 .workers = random.Between(1, 2),
                 .paths = static_cast<uint32_t>(random.Between(1, 3)),
                 .window_bytes = random.Coin() ? 4096u : 0u},
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
          // The receive may have been posted too late.
          ASSERT_TRUE(status == 0 || status == static_cast<uint8_t>(WcStatus::kRnrRetryExceeded));
          given_up += status != 0 ? 1 : 0;
        }
      }
      for (const auto& [endpoint, list] : world.received[side]) {
        std::map<uint32_t, uint32_t> last;
        for (const auto& one : list) {
          EXPECT_TRUE(seen.insert(one.id).second) << one.id << " came twice";
          EXPECT_EQ(to[one.id], (std::pair<int, size_t>{side, endpoint}));
          // Messages of strong order from one endpoint to another keep their order.
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
