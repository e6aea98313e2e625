// SPDX-License-Identifier: Apache-2.0
// RNIC model against gateways and against itself: bytes arrive in both directions, also over a bad
// cable, and DCQCN behaves as described.
#include "tests/sim/rnic/rnic.h"

#include <gtest/gtest.h>

#include "tests/sim/host/host.h"
#include "tests/sim/oracle/content.h"

namespace rocegw::sim {
namespace {

TEST(Dcqcn, WithoutCnps_StaysAtLineRate) {
  ReactionPoint point({}, 100'000'000'000);
  TimePoint now{1000};
  for (int i = 0; i < 1000; ++i) {
    point.OnSent(100'000, now);
    now = now + Microseconds(8);
    ASSERT_EQ(point.Rate(now), 100'000'000'000);
  }
}

TEST(Dcqcn, FirstCnp_HalvesTheRate) {
  ReactionPoint point({}, 100'000'000'000);
  point.OnCnp({1000});
  // alpha is 1023/1024, and the cut is alpha/2.
  EXPECT_NEAR(static_cast<double>(point.Rate({1000})), 50.05e9, 0.01e9);
}

TEST(Dcqcn, CnpsCloserThanTheMonitorPeriod_CutOnce) {
  ReactionPoint point({}, 100'000'000'000);
  for (int64_t ns = 0; ns < 4000; ns += 500) point.OnCnp({1000 + ns});
  EXPECT_NEAR(static_cast<double>(point.Rate({5000})), 50.05e9, 0.01e9);
  point.OnCnp({5000});
  EXPECT_LT(point.Rate({5000}), 30'000'000'000);
}

TEST(Dcqcn, CnpsWithoutEnd_StopAtTheMinimum) {
  ReactionPoint point({}, 100'000'000'000);
  TimePoint now{1000};
  for (int i = 0; i < 100; ++i, now = now + Microseconds(10)) point.OnCnp(now);
  EXPECT_EQ(point.Rate(now), 1'000'000);
}

TEST(Dcqcn, QuietAfterACut_RecoversHalfwayAtTheTimer) {
  DcqcnParameters parameters;
  parameters.rpg_threshold = 5;
  ReactionPoint point(parameters, 100'000'000'000);
  point.OnCnp({1000});
  const int64_t cut = point.Rate({1000});
  EXPECT_EQ(point.Rate(TimePoint{1000} + Microseconds(299)), cut);
  EXPECT_NEAR(static_cast<double>(point.Rate(TimePoint{1000} + Microseconds(300))), 75e9, 0.1e9);
  EXPECT_NEAR(static_cast<double>(point.Rate(TimePoint{1000} + Microseconds(600))), 87.5e9, 0.1e9);
}

TEST(Dcqcn, BytesSent_CountAsWellAsTime) {
  DcqcnParameters parameters;
  parameters.rpg_threshold = 5;
  ReactionPoint point(parameters, 100'000'000'000);
  point.OnCnp({1000});
  point.OnSent(uint64_t{32'767} * 64, {2000});
  EXPECT_NEAR(static_cast<double>(point.Rate({2000})), 75e9, 0.1e9);
}

TEST(Dcqcn, Alpha_FadesWithTime) {
  ReactionPoint point({}, 100'000'000'000);
  point.OnCnp({1000});
  // After 142 us alpha is half of its old value.
  const TimePoint later = TimePoint{1000} + Microseconds(142);
  const int64_t before = point.Rate(later);
  point.OnCnp(later);
  EXPECT_NEAR(static_cast<double>(point.Rate(later)) / static_cast<double>(before), 0.75, 0.005);
}

TEST(Dcqcn, NotificationPoint_KeepsItsDistance) {
  NotificationPoint point;
  int cnps = 0;
  for (int64_t ns = 0; ns < 40'000; ns += 100) cnps += point.OnMarked({}, {1000 + ns}) ? 1 : 0;
  EXPECT_EQ(cnps, 10);
}

// Requests of all three kinds from one side, checked on both.
struct Case {
  const char* name;
  FaultProbabilities trouble;
};

class RnicUnder : public ::testing::TestWithParam<Case> {};

constexpr uint32_t kLength = 20'000;
constexpr uint64_t kSlot = 20'480;
constexpr uint64_t kMessages = 60;

// Memory layout: source slots, targets, receives, then the area that is read.
uint64_t Source(uint64_t message) { return message % 8 * kSlot; }
uint64_t Target(uint64_t message) { return (8 + message % 8) * kSlot; }
uint64_t Inbox(uint64_t message) { return (16 + message % 8) * kSlot; }
constexpr uint64_t kLibrary = 24 * kSlot;
constexpr size_t kMemory = 32 * kSlot;

bool Holds(std::span<const uint8_t> memory, uint64_t at, uint64_t stream) {
  std::vector<uint8_t> expected(kLength);
  Fill(stream, 0, expected);
  return std::equal(expected.begin(), expected.end(), memory.begin() + static_cast<ptrdiff_t>(at));
}

TEST_P(RnicUnder, RequestsToAGateway_DoWhatTheyShould) {
  Network network({.seed = 3});
  Rnic rnic(network, 1, {.memory_bytes = kMemory});
  Host host(network, 2, {.memory_bytes = kMemory});
  const Wiring wiring = WirePair(network, rnic, host, {});
  for (Link* link : wiring.up) link->faults().Set(GetParam().trouble);
  RingEnd& end = host.AddQp({.qpn = 77});
  host.ConnectTo(end, rnic.gid(), Qpn{55}, Psn(1000), Psn(0xFFFFF0), {.path_mtu = 3});
  const size_t qp = rnic.Connect({.own_qpn = 55,
                                  .peer = host.gid(),
                                  .peer_qpn = Qpn{77},
                                  .mtu = 1024,
                                  .send_psn = Psn(0xFFFFF0),
                                  .receive_psn = Psn(1000)});
  Fill(99, 0, host.memory().subspan(kLibrary, kLength));
  uint64_t posted = 0, completed = 0, received = 0;
  const auto post = [&] {
    while (posted < kMessages && posted - completed < 4) {
      const uint64_t m = posted++;
      Fill(m, 0, std::span(rnic.memory()).subspan(Source(m), kLength));
      const auto kind = static_cast<RnicOperation>(m % 3);
      const bool read = kind == RnicOperation::kRead;
      rnic.Post(qp, {.id = m,
                     .operation = kind,
                     .offset = read ? Target(m) : Source(m),
                     .length = kLength,
                     .remote_address = Host::kBase + (read ? kLibrary : Target(m)),
                     .rkey = host.key()});
    }
  };
  rnic.OnComplete([&](size_t, const RnicCompletion& completion) {
    ASSERT_TRUE(completion.ok);
    ASSERT_EQ(completion.id, completed++);
    if (completion.operation == RnicOperation::kRead) {
      EXPECT_TRUE(Holds(rnic.memory(), Target(completion.id), 99));
    } else if (completion.operation == RnicOperation::kWrite) {
      EXPECT_TRUE(Holds(host.memory(), Target(completion.id), completion.id));
    }
    post();
  });
  struct Receiver final : Program {
    std::function<void()> look;
    void Look(TimePoint) override { look(); }
  } receiver;
  uint64_t receives = 0;
  receiver.look = [&] {
    for (const rocegw_cqe& cqe : end.Poll()) {
      ASSERT_EQ(cqe.status, 0);
      ASSERT_EQ(cqe.wr_id, received);
      EXPECT_EQ(cqe.byte_length, kLength);
      // Every third message is a SEND.
      EXPECT_TRUE(Holds(host.memory(), Inbox(received), received * 3));
      ++received;
    }
    while (receives - received < 2) {
      ASSERT_TRUE(
          end.PostReceive(receives, {{Host::kBase + Inbox(receives), kLength, host.key()}}));
      ++receives;
    }
  };
  host.Add(receiver);
  receiver.look();
  post();
  while ((completed < kMessages || received < kMessages / 3) &&
         network.RunOne(EventQueue::kStart + Seconds(20))) {
  }
  EXPECT_EQ(completed, kMessages);
  EXPECT_EQ(received, kMessages / 3);
  if (GetParam().trouble.lose > 0) {
    EXPECT_GT(rnic.counters().retransmitted, 0u);
  }
}

TEST_P(RnicUnder, RequestsOfAGateway_DoWhatTheyShould) {
  Network network({.seed = 4});
  Host host(network, 1, {.memory_bytes = kMemory});
  Rnic rnic(network, 2, {.memory_bytes = kMemory});
  const Wiring wiring = WirePair(network, host, rnic, {});
  for (Link* link : wiring.up) link->faults().Set(GetParam().trouble);
  RingEnd& end = host.AddQp({.qpn = 77});
  host.ConnectTo(end, rnic.gid(), Qpn{55}, Psn(1000), Psn(2000), {.path_mtu = 3});
  const size_t qp = rnic.Connect({.own_qpn = 55,
                                  .peer = host.gid(),
                                  .peer_qpn = Qpn{77},
                                  .mtu = 1024,
                                  .send_psn = Psn(2000),
                                  .receive_psn = Psn(1000)});
  Fill(99, 0, std::span(rnic.memory()).subspan(kLibrary, kLength));
  uint64_t posted = 0, completed = 0, received = 0, receives = 0;
  const auto supply = [&] {
    while (receives - received < 2) {
      rnic.PostReceive(qp, receives, Inbox(receives), kLength);
      ++receives;
    }
  };
  rnic.OnComplete([&](size_t, const RnicCompletion& completion) {
    ASSERT_EQ(completion.operation, RnicOperation::kReceive);
    ASSERT_EQ(completion.id, received);
    EXPECT_TRUE(Holds(rnic.memory(), Inbox(received), received * 3));
    ++received;
    supply();
  });
  struct Sender final : Program {
    std::function<void()> look;
    void Look(TimePoint) override { look(); }
  } sender;
  sender.look = [&] {
    for (const rocegw_cqe& cqe : end.Poll()) {
      ASSERT_EQ(cqe.status, 0);
      ASSERT_EQ(cqe.wr_id, completed);
      if (completed % 3 == 1) {
        EXPECT_TRUE(Holds(rnic.memory(), Target(completed), completed));
      } else if (completed % 3 == 2) {
        EXPECT_TRUE(Holds(host.memory(), Target(completed), 99));
      }
      ++completed;
    }
    bool rang = false;
    while (posted < kMessages && posted - completed < 4) {
      const uint64_t m = posted++;
      Fill(m, 0, host.memory().subspan(Source(m), kLength));
      rocegw_send_wqe wqe{};
      wqe.wr_id = m;
      wqe.flags = ROCEGW_WQE_SIGNALED;
      wqe.opcode = m % 3 == 0   ? ROCEGW_WR_SEND
                   : m % 3 == 1 ? ROCEGW_WR_RDMA_WRITE
                                : ROCEGW_WR_RDMA_READ;
      wqe.u.rdma.rkey = rnic.key();
      wqe.u.rdma.remote_address = Rnic::kBase + (m % 3 == 2 ? kLibrary : Target(m));
      const uint64_t local = m % 3 == 2 ? Target(m) : Source(m);
      ASSERT_TRUE(end.PostSend(wqe, {{Host::kBase + local, kLength, host.key()}}));
      rang = true;
    }
    if (rang) host.Ring(end);
  };
  host.Add(sender);
  supply();
  sender.look();
  while ((completed < kMessages || received < kMessages / 3) &&
         network.RunOne(EventQueue::kStart + Seconds(20))) {
  }
  EXPECT_EQ(completed, kMessages);
  EXPECT_EQ(received, kMessages / 3);
}

INSTANTIATE_TEST_SUITE_P(
    All, RnicUnder,
    ::testing::Values(Case{"calm", {}}, Case{"loss", {.lose = 0.01}},
                      Case{"everything",
                           {.lose = 0.01, .duplicate = 0.02, .delay = 0.01, .corrupt = 0.01}}),
    [](const auto& parameters) { return parameters.param.name; });

TEST(Rnics, ManyToOne_SlowDownAndShare) {
  Network network({.seed = 5});
  std::vector<std::unique_ptr<Rnic>> rnics;
  std::vector<Endpoint*> ends;
  constexpr uint32_t kSenders = 4;
  for (uint32_t i = 1; i <= kSenders + 1; ++i) {
    ends.push_back(rnics.emplace_back(std::make_unique<Rnic>(network, i, RnicConfig{})).get());
  }
  const LinkConfig edge{.bits_per_second = 40'000'000'000,
                        .queue_bytes = 8 << 20,
                        .ecn = {.kind = EcnRule::Kind::kRed}};
  const Wiring wiring = WireStar(network, ends, edge);
  for (uint32_t i = 0; i < kSenders; ++i) {
    Rnic& from = *rnics[i + 1];
    from.Connect({.own_qpn = 10, .peer = AddressOf(1), .peer_qpn = Qpn{20 + i}});
    rnics[0]->Connect({.own_qpn = 20 + i, .peer = from.gid(), .peer_qpn = Qpn{10}});
    from.OnComplete([&from, &rnics](size_t, const RnicCompletion&) {
      from.Post(0, {.operation = RnicOperation::kWrite,
                    .length = 100'000,
                    .remote_address = Rnic::kBase,
                    .rkey = rnics[0]->key()});
    });
    for (int k = 0; k < 4; ++k) {
      from.Post(0, {.operation = RnicOperation::kWrite,
                    .length = 100'000,
                    .remote_address = Rnic::kBase,
                    .rkey = rnics[0]->key()});
    }
  }
  network.RunFor(Milliseconds(20));
  const uint64_t before = wiring.down[0]->counters().bytes;
  network.RunFor(Milliseconds(20));
  const double used = static_cast<double>(wiring.down[0]->counters().bytes - before) * 8 / 0.02;
  EXPECT_GT(used, 0.6 * 40e9);
  EXPECT_EQ(wiring.down[0]->counters().tail_drops, 0u);
  EXPECT_GT(rnics[0]->counters().cnps_sent, 100u);
  for (uint32_t i = 1; i <= kSenders; ++i) {
    EXPECT_GT(rnics[i]->counters().cnps_received, 0u);
    EXPECT_EQ(rnics[i]->counters().timeouts, 0u);
  }
}

}  // namespace
}  // namespace rocegw::sim
