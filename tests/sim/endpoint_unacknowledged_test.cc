// SPDX-License-Identifier: Apache-2.0
// Messages of endpoints that nothing answers, over channels with loss, duplicates and delay: each
// arrives once or not at all, and none of its bytes are those of another.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "tests/sim/endpoint_world.h"
#include "tests/support/random.h"

namespace rocegw::testing::endpoint_unacknowledged {
namespace {

using endpoint::World;
using verbs::WcStatus;

using Ids = std::vector<uint32_t>;
constexpr uint8_t kSend = ROCEGW_WR_SEND_WITH_IMM;
constexpr uint8_t kWrite = ROCEGW_WR_RDMA_WRITE;
constexpr uint16_t kUnacknowledged = ROCEGW_WQE_UNACKNOWLEDGED | ROCEGW_WQE_ORDER_NONE;
constexpr uint64_t kThere = 0x1E0000;

uint64_t Replies(World& world) {
  return world.gateways().Count(1, &metrics::WorkerCounters::ack_tx_packets);
}

TEST(EndpointUnacknowledged, ArrivesWithoutAReply) {
  World world({.mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 1, kUnacknowledged));
  ASSERT_TRUE(world.Post(0, 0, 1, kWrite, 100, 2, kUnacknowledged, kThere));
  world.Run(100);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{1, 2}));
  EXPECT_EQ(world.Ids(1, 0), (Ids{1}));
  EXPECT_TRUE(World::Holds(&world.gateways().memory(1)[kThere], 100, 2));
  EXPECT_EQ(Replies(world), 0u);
  // The same endpoint may ask for answers, too.
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 3, ROCEGW_WQE_ORDER_NONE));
  world.Run(100);
  EXPECT_EQ(world.Ids(1, 0), (Ids{1, 3}));
  EXPECT_EQ(Replies(world), 1u);
}

TEST(EndpointUnacknowledged, Lost_StaysLost_AndOthersArrive) {
  World world({.mode = verbs::ServiceMode::kUnordered});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 1, kUnacknowledged));
  world.Run(60);
  world.Lose(0);
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 2, kUnacknowledged));
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 3, kUnacknowledged));
  world.Run(2000);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{1, 2, 3}));
  EXPECT_EQ(world.Ids(1, 0), (Ids{1, 3}));
}

TEST(EndpointUnacknowledged, WithoutAReceive_IsDropped_AndNotOfferedAgain) {
  World world({.mode = verbs::ServiceMode::kUnordered, .receives = 0});
  ASSERT_TRUE(world.Post(0, 0, 1, kSend, 100, 1, kUnacknowledged));
  world.Run(100);
  world.PostReceive(1, 0);
  world.Run(1000);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{1}));
  EXPECT_EQ(world.Ids(1, 0), (Ids{}));
}

// Copier of side 0 that executes at once.
class SenderCopier final : public memory::Copier {
 public:
  bool Submit(WorkerIndex, std::unique_ptr<memory::Batch>& batch) override {
    for (const memory::MemoryOp& op : batch->ops) {
      const uint8_t* const at = &world->gateways().memory(0)[op.address - GatewayPair::kBase];
      if (op.kind == memory::OpKind::kRead) std::copy_n(at, op.length, op.buffer);
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

// The bytes wait for a copier, and the request is complete before its frame leaves.
TEST(EndpointUnacknowledged, OfAnUntrustedProgram_ArrivesToo) {
  SenderCopier copier;
  World world({.mode = verbs::ServiceMode::kUnordered, .copier = &copier});
  copier.world = &world;
  for (uint32_t id = 0; id < 8; ++id)
    ASSERT_TRUE(world.Post(0, 0, 1, kSend, 500, id, kUnacknowledged));
  world.Run(300);
  EXPECT_EQ(world.SentIds(0, 0), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(world.Ids(1, 0), (Ids{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Replies(world), 0u);
}

TEST(EndpointUnacknowledged, WhateverTheNetworkDoes_OnceOrNotAtAll) {
  uint32_t arrived_of_all = 0;
  constexpr uint32_t kMessages = 300;
  constexpr uint64_t kSeeds = 20;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    World world({.each = 3,
                 .mode = verbs::ServiceMode::kUnordered,
                 .any_completion_order = random.Coin(),
                 .workers = random.Between(1, 2),
                 .give_up_ms = 500},
                seed);
    world.script().Set({.drop = random.Below(3) * 0.05,
                        .delay = random.Below(2) * 0.1,
                        .duplicate = random.Below(2) * 0.05});
    std::map<uint32_t, bool> acknowledged;
    uint32_t posted = 0;
    for (int step = 0; step < 30000; ++step) {
      while (posted < kMessages && random.Below(3) != 0) {
        const bool answered = random.Below(4) == 0;
        const uint16_t flags = answered ? uint16_t{ROCEGW_WQE_ORDER_NONE} : kUnacknowledged;
        const auto length = static_cast<uint32_t>(random.Below(1000));
        if (!world.Post(0, random.Below(3), World::HandleOf(random.Below(3)), kSend, length, posted,
                        flags)) {
          break;
        }
        acknowledged[posted++] = answered;
      }
      world.Step();
    }
    ASSERT_EQ(posted, kMessages);
    std::set<uint32_t> arrived;
    for (const auto& [endpoint, list] : world.received[1]) {
      for (const auto& one : list)
        EXPECT_TRUE(arrived.insert(one.id).second) << one.id << " arrived twice";
    }
    size_t ended = 0;
    for (const auto& [endpoint, list] : world.sent[0]) {
      for (const auto& [id, status] : list) {
        ++ended;
        if (!acknowledged[id]) {
          EXPECT_EQ(status, 0) << id;
        } else if (status == 0) {
          EXPECT_TRUE(arrived.contains(id)) << id;
        }
      }
    }
    EXPECT_EQ(ended, kMessages);
    arrived_of_all += static_cast<uint32_t>(arrived.size());
  }
  EXPECT_GT(arrived_of_all, kMessages * kSeeds / 2);
}

}  // namespace
}  // namespace rocegw::testing::endpoint_unacknowledged
