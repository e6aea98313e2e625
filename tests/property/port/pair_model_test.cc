// SPDX-License-Identifier: Apache-2.0
// Pair port and tampering port, compared with simple models, over seeded random steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "gateway/port/pair_port.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/network/port_fixture.h"
#include "tests/support/network/tamper_port.h"

namespace rocegw::port {
namespace {

using rocegw::testing::IsTestPacket;
using rocegw::testing::PsnOf;
using rocegw::testing::ReceiveAll;
using rocegw::testing::Received;
using rocegw::testing::SendTestPacket;
using rocegw::testing::TamperAction;
using rocegw::testing::TamperPort;
using rocegw::testing::TamperRule;
using rocegw::testing::TamperScript;
using rocegw::testing::TestPath;
using rocegw::testing::WriteTestPacket;

// Model: between two queues, packets arrive in the order in which they were sent.
class PairSteps {
 public:
  PairSteps(uint64_t seed, const PairConfig& config)
      : random_(seed), config_(config), link_(config) {}

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      const size_t side = Below(2);
      const size_t queue = Below(link_.queues(side));
      switch (Below(4)) {
        case 0:
        case 1:
          Transmit(side, queue);
          break;
        case 2:
          Receive(side, queue);
          break;
        default:
          ReleaseOne(side, queue);
      }
    }
    Drain();
  }

 private:
  size_t Below(size_t n) { return random_() % n; }

  void Transmit(size_t side, size_t queue) {
    PairPort& port = link_.port(side, queue);
    std::vector<TxPacket*> packets;
    const size_t wanted = Below(20);
    for (size_t i = 0; i < wanted; ++i) {
      TxPacket* packet = port.Acquire();
      if (packet == nullptr) break;
      packet->path = TestPath();
      // The source port carries the sender's queue.
      packet->path.source_port = static_cast<uint16_t>(0xC000 + queue);
      const Qpn qpn{static_cast<uint32_t>(random_() & 0xFFFFFF)};
      packet->length =
          static_cast<uint32_t>(WriteTestPacket(qpn, psn_++, Below(200), packet->data));
      packets.push_back(packet);
    }
    const size_t taken = port.Transmit(packets);
    ASSERT_LE(taken, packets.size());
    for (size_t i = 0; i < packets.size(); ++i) {
      if (i < taken) {
        const Qpn qpn = DestinationQpn({packets[i]->data, packets[i]->length});
        const size_t to = config_.steering[1 - side].WorkerOf(qpn);
        expected_[{1 - side, to, queue}].push_back(PsnOf({packets[i]->data, packets[i]->length}));
      } else {
        port.Release(packets[i]);
      }
    }
  }

  void Receive(size_t side, size_t queue) {
    std::array<wire::RxDatagram, 64> burst;
    const size_t wanted = Below(burst.size()) + 1;
    const size_t count = link_.port(side, queue).Receive(std::span(burst).first(wanted));
    for (size_t i = 0; i < count; ++i) {
      const size_t sender = burst[i].meta.source_port - 0xC000U;
      auto& expected = expected_[{side, queue, sender}];
      ASSERT_FALSE(expected.empty()) << "a packet that nobody sent here";
      EXPECT_EQ(PsnOf(burst[i].bytes), expected.front());
      expected.pop_front();
      EXPECT_TRUE(IsTestPacket(burst[i].bytes));
      uint16_t id = burst[i].meta.ip_id;
      EXPECT_TRUE(wire::VerifyIcrc(burst[i].meta, burst[i].bytes, &id));
    }
  }

  void ReleaseOne(size_t side, size_t queue) {
    TxPacket* packet = link_.port(side, queue).Acquire();
    if (packet != nullptr) link_.port(side, queue).Release(packet);
  }

  // Finally every packet has arrived and every buffer is returned.
  void Drain() {
    for (int round = 0; round < 100; ++round) {
      for (size_t side = 0; side < 2; ++side) {
        for (size_t queue = 0; queue < link_.queues(side); ++queue) Receive(side, queue);
      }
    }
    for (const auto& [key, expected] : expected_) EXPECT_TRUE(expected.empty());
    for (size_t side = 0; side < 2; ++side) {
      for (size_t queue = 0; queue < link_.queues(side); ++queue) {
        size_t free = 0;
        while (link_.port(side, queue).Acquire() != nullptr) ++free;
        EXPECT_EQ(free, config_.packets_per_queue);
      }
    }
    EXPECT_GT(psn_, 0U);
  }

  std::mt19937_64 random_;
  const PairConfig config_;
  PairLink link_;
  std::map<std::array<size_t, 3>, std::deque<uint32_t>> expected_;  // side, queue, sending queue
  uint32_t psn_ = 0;
};

class PairModel : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, PairModel, ::testing::Range<uint64_t>(1, 21));

TEST_P(PairModel, RandomSteps_LoseNothingAndKeepOrderPerLane) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  PairConfig config{.steering = {SteeringTable(random() % 3 + 1), SteeringTable(random() % 3 + 1)},
                    .packets_per_queue = random() % 60 + 4,
                    .queue_depth = random() % 2 == 0 ? 0 : random() % 30 + 1,
                    .first_ip_id = static_cast<uint16_t>(random())};
  PairSteps(GetParam(), config).Run(3000);
}

class TamperModel : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, TamperModel, ::testing::Range<uint64_t>(1, 31));

// Whatever faults occur, packet counts add up, and without delays and reordering the order stays.
TEST_P(TamperModel, EveryPacketIsAccountedFor) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  std::mt19937_64 random(GetParam());
  const auto chance = [&] { return static_cast<double>(random() % 20) / 100; };
  const bool keeps_order = random() % 2 == 0;
  PairLink link;
  TamperScript script(GetParam());
  TamperPort port(link.port(1), script, 1);
  script.Set({.drop = chance(),
              .delay = keeps_order ? 0 : chance(),
              .delay_max = random() % 10 + 1,
              .duplicate = chance(),
              .corrupt = chance(),
              .mark_ce = chance()});
  if (!keeps_order) {
    script.Add(
        {.action = TamperAction::kReorder, .skip = random() % 50, .count = random() % 8 + 2});
  }
  const size_t drop_rule = script.Add({.action = TamperAction::kDrop, .skip = 10, .times = 5});
  constexpr uint32_t kPackets = 500;
  std::map<uint32_t, size_t> intact;
  size_t received = 0;
  size_t corrupted = 0;
  uint32_t newest = 0;
  for (uint32_t psn = 0; psn < kPackets; ++psn) {
    ASSERT_TRUE(SendTestPacket(link.port(0), TestPath(), Qpn{0x12}, psn, 40));
    if (random() % 7 != 0 && psn + 1 != kPackets) continue;
    for (const Received& one : ReceiveAll(port)) {
      ++received;
      uint16_t id = one.meta.ip_id;
      // The ICRC does not cover byte 4 of the BTH, which is sent as zero.
      if (!wire::VerifyIcrc(one.meta, one.bytes, &id) || one.bytes[4] != 0) {
        ++corrupted;
        continue;
      }
      ++intact[PsnOf(one.bytes)];
      if (keeps_order) {
        EXPECT_GE(PsnOf(one.bytes), newest);
      }
      newest = std::max(newest, PsnOf(one.bytes));
    }
  }
  port.ReleaseHeld();
  const auto rest = ReceiveAll(port);
  received += rest.size();
  EXPECT_EQ(received, kPackets - script.dropped() + script.duplicated());
  EXPECT_EQ(corrupted, script.corrupted());
  EXPECT_GE(script.rule(drop_rule).matched, script.rule(drop_rule).acted);
  for (const auto& [psn, count] : intact) EXPECT_LE(count, 2U) << psn;
}

}  // namespace
}  // namespace rocegw::port
