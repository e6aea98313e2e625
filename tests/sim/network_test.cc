// SPDX-License-Identifier: Apache-2.0
// The simulated network itself: order of events, times of links, queues, marking, routing, fault
// rules.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>

#include "gateway/wire/congestion_hint.h"
#include "tests/sim/network/topology.h"

namespace rocegw::sim {
namespace {

class Recorder final : public EventHandler {
 public:
  explicit Recorder(EventQueue& queue) : queue_(queue) {}
  void OnEvent(uint64_t argument) override { seen.emplace_back(queue_.now().ns, argument); }
  std::vector<std::pair<int64_t, uint64_t>> seen;

 private:
  EventQueue& queue_;
};

TEST(EventQueue, Events_ComeByTimeAndThenByEntry) {
  EventQueue queue;
  Recorder recorder(queue);
  Random random(1);
  std::vector<std::pair<int64_t, uint64_t>> expected;
  for (uint64_t i = 0; i < 5000; ++i) {
    const auto when = static_cast<int64_t>(random.Below(300));
    queue.At(EventQueue::kStart + Nanoseconds(when), recorder, i);
    expected.emplace_back(EventQueue::kStart.ns + when, i);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  queue.RunUntil(EventQueue::kStart + Microseconds(1));
  EXPECT_EQ(recorder.seen, expected);
  EXPECT_EQ(queue.now(), EventQueue::kStart + Microseconds(1));
}

TEST(EventQueue, EventsOfThePast_ComeNow) {
  EventQueue queue;
  Recorder recorder(queue);
  queue.RunUntil(EventQueue::kStart + Microseconds(5));
  queue.At(EventQueue::kStart, recorder, 7);
  EXPECT_TRUE(queue.RunOne());
  EXPECT_EQ(recorder.seen.at(0).first, (EventQueue::kStart + Microseconds(5)).ns);
  EXPECT_FALSE(queue.RunOne());
}

// Records when packets arrive, and returns them.
class Sink final : public Endpoint {
 public:
  Sink(Network& network, uint32_t number) : Endpoint(number), network_(network) {}
  void Attach(Link& uplink) override { up = &uplink; }
  void Arrive(Packet* packet) override {
    arrivals.push_back(network_.now().ns - EventQueue::kStart.ns);
    numbers.push_back(packet->number);
    ce += (packet->meta.traffic_class & kEcnMask) == kCongestionExperienced ? 1 : 0;
    last_byte4 = packet->data[4];
    network_.store().Put(packet);
  }
  // Sends a packet with a datagram of `size` bytes.
  void Send(uint32_t to, uint32_t size, uint8_t opcode = 4, uint16_t source_port = 0xC000) {
    Packet* packet = network_.store().Get();
    std::memset(packet->data, 0, size);
    packet->data[0] = opcode;
    packet->size = size;
    packet->number = network_.NextNumber();
    packet->meta = {};
    packet->meta.source = AddressOf(number());
    packet->meta.destination = AddressOf(to);
    packet->meta.source_port = source_port;
    packet->meta.traffic_class = kEctZero;
    up->Send(packet, network_.now());
  }

  Link* up = nullptr;
  std::vector<int64_t> arrivals;
  std::vector<uint64_t> numbers;
  uint64_t ce = 0;
  uint8_t last_byte4 = 0;

 private:
  Network& network_;
};

// Datagram size for 1000 bytes on the cable.
constexpr uint32_t kThousand = 1000 - kEthernetOverhead - 28;

TEST(Link, BackToBackPackets_ArriveAtTheLinksRateAfterItsDelay) {
  Network network;
  Sink a(network, 1), b(network, 2);
  WirePair(network, a, b, {.bits_per_second = 8'000'000'000, .delay = Microseconds(3)});
  for (int i = 0; i < 3; ++i) a.Send(2, kThousand);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.arrivals, (std::vector<int64_t>{4000, 5000, 6000}));
}

TEST(Link, ManyPackets_TakeNeitherMoreNorLessThanTheRateAllows) {
  // 100 Gbit/s are 0.08 ns per byte: rounding errors must not add up.
  Network network;
  Sink a(network, 1), b(network, 2);
  WirePair(network, a, b, {.bits_per_second = 100'000'000'000, .delay = Nanoseconds(0)});
  constexpr int kPackets = 10000;
  for (int i = 0; i < kPackets; ++i) a.Send(2, 100);
  network.RunFor(Milliseconds(10));
  ASSERT_EQ(b.arrivals.size(), size_t{kPackets});
  EXPECT_NEAR(static_cast<double>(b.arrivals.back()), kPackets * 166 * 0.08, 2);
}

TEST(Link, QueueThatIsFull_DropsAtItsTail) {
  Network network;
  Sink a(network, 1), b(network, 2);
  LinkConfig edge{.bits_per_second = 8'000'000'000, .queue_bytes = 5000};
  LinkConfig fast = edge;
  fast.bits_per_second *= 10;
  Switch& middle = network.AddSwitch();
  Link& up = network.AddLink({.bits_per_second = 80'000'000'000}, middle, "up");
  a.Attach(up);
  Link& down = network.AddLink(edge, b, "down");
  middle.Route(2, middle.AddPort(down));
  for (int i = 0; i < 20; ++i) a.Send(2, kThousand);
  network.RunFor(Milliseconds(1));
  // Five fit; while twenty arrive, two more leave.
  EXPECT_EQ(down.counters().tail_drops, 20 - b.arrivals.size());
  EXPECT_GE(b.arrivals.size(), 6u);
  EXPECT_LE(b.arrivals.size(), 7u);
  EXPECT_EQ(b.numbers.front(), 1u);
  EXPECT_LE(down.counters().queue_most, 5000u);
  EXPECT_EQ(down.queued_bytes(network.now()), 0u);
}

TEST(Marking, Step_MarksFromTheThresholdOn) {
  Random random(1);
  const EcnRule rule{.kind = EcnRule::Kind::kStep, .k_min = 1000};
  EXPECT_FALSE(WantsMark(rule, 999, random));
  EXPECT_TRUE(WantsMark(rule, 1000, random));
}

TEST(Marking, Red_RisesLinearlyBetweenItsEnds) {
  Random random(1);
  const EcnRule rule{.kind = EcnRule::Kind::kRed, .k_min = 1000, .k_max = 3000, .p_max = 0.5};
  const auto share = [&](uint64_t queued) {
    int marked = 0;
    for (int i = 0; i < 20000; ++i) marked += WantsMark(rule, queued, random) ? 1 : 0;
    return marked / 20000.0;
  };
  EXPECT_EQ(share(1000), 0);
  EXPECT_NEAR(share(2000), 0.25, 0.02);
  EXPECT_NEAR(share(2999), 0.5, 0.02);
  EXPECT_EQ(share(3000), 1);
}

TEST(Marking, PacketsThatAreNotEcnCapable_AreNeverMarked) {
  Network network;
  Sink a(network, 1), b(network, 2);
  const LinkConfig edge{.ecn = {.kind = EcnRule::Kind::kStep, .k_min = 0}};
  Endpoint* ends[] = {&a, &b};
  const Wiring wiring = WireStar(network, ends, edge);
  a.Send(2, 500);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.ce, 1u);
  Packet* packet = network.store().Get();
  std::memset(packet->data, 0, 100);
  packet->size = 100;
  packet->meta = {.source = AddressOf(1), .destination = AddressOf(2)};
  a.up->Send(packet, network.now());
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.arrivals.size(), 2u);
  EXPECT_EQ(b.ce, 1u);
  EXPECT_EQ(wiring.down[1]->counters().marked, 1u);
}

TEST(Hints, OnlyPrivateOpcodes_CarryThem) {
  Network network;
  Sink a(network, 1), b(network, 2);
  Endpoint* ends[] = {&a, &b};
  WireStar(network, ends, {.hints = {.low = 0, .high = 10'000}});
  a.Send(2, 500, 0xC0);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.last_byte4 & wire::kHintLevelMask, 1) << "nothing waits";
  a.Send(2, 500, 0x04);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.last_byte4, 0);
}

TEST(Faults, RuleOnTheNthPacket_HitsThatOneAlone) {
  Network network;
  Sink a(network, 1), b(network, 2);
  const Wiring wiring = WirePair(network, a, b, {});
  wiring.up[0]->faults().Add({.kind = FaultKind::kLose, .data_only = true, .skip = 2});
  a.Send(2, 50);  // too small to be data: not counted
  for (int i = 0; i < 5; ++i) a.Send(2, 500);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.numbers, (std::vector<uint64_t>{1, 2, 3, 5, 6}));
  EXPECT_EQ(wiring.up[0]->counters().lost, 1u);
  EXPECT_EQ(wiring.up[0]->faults().rule(0).acted, 1u);
}

TEST(Faults, DelayAndDuplicate_ReorderAndRepeat) {
  Network network;
  Sink a(network, 1), b(network, 2);
  const Wiring wiring = WirePair(network, a, b, {});
  wiring.up[0]->faults().Add({.kind = FaultKind::kDelay, .skip = 0, .delay = Microseconds(10)});
  wiring.up[0]->faults().Add({.kind = FaultKind::kDuplicate, .skip = 1});
  for (int i = 0; i < 4; ++i) a.Send(2, 500);
  network.RunFor(Milliseconds(1));
  EXPECT_EQ(b.numbers, (std::vector<uint64_t>{2, 3, 3, 4, 1}));
}

TEST(Faults, Probabilities_ComeOutAsGiven) {
  Network network;
  Sink a(network, 1), b(network, 2);
  const Wiring wiring = WirePair(network, a, b, {});
  wiring.up[0]->faults().Set({.lose = 0.1, .duplicate = 0.05, .corrupt = 0.02});
  constexpr int kPackets = 20000;
  for (int i = 0; i < kPackets; ++i) a.Send(2, 200);
  network.RunFor(Milliseconds(100));
  const LinkCounters& counters = wiring.up[0]->counters();
  EXPECT_NEAR(static_cast<double>(counters.lost), kPackets * 0.1, 200);
  EXPECT_EQ(b.arrivals.size(), kPackets - counters.lost + counters.duplicated);
  EXPECT_GT(counters.corrupted, 0u);
}

TEST(Topology, LeafAndSpine_SpreadFlowsAndReachEverybody) {
  Network network;
  std::vector<std::unique_ptr<Sink>> sinks;
  std::vector<Endpoint*> ends;
  for (uint32_t i = 1; i <= 12; ++i) {
    ends.push_back(sinks.emplace_back(std::make_unique<Sink>(network, i)).get());
  }
  const Wiring wiring = WireLeafSpine(network, ends, 4, 3, {}, {});
  for (uint32_t from = 1; from <= 12; ++from) {
    for (uint32_t to = 1; to <= 12; ++to) {
      if (from == to) continue;
      for (uint16_t port = 0; port < 8; ++port) {
        sinks[from - 1]->Send(to, 200, 4, static_cast<uint16_t>(0xC000 + port));
      }
    }
  }
  network.RunFor(Milliseconds(1));
  for (const auto& sink : sinks) EXPECT_EQ(sink->arrivals.size(), 11u * 8);
  for (Switch* at : wiring.switches) EXPECT_EQ(at->unroutable(), 0u);
  // 8 remote hosts, 4 local hosts, 8 flows each: 256 packets leave each leaf, over three spines.
  for (Link* link : wiring.trunk) {
    EXPECT_GT(link->counters().packets, 40u) << link->name();
    EXPECT_LT(link->counters().packets, 140u) << link->name();
  }
}

// Cost of forwarding alone: one packet, three links. Printed, not asserted, because the machine is
// shared.
TEST(Network, Forwarding_CostsThis) {
  Network network;
  std::vector<std::unique_ptr<Sink>> sinks;
  std::vector<Endpoint*> ends;
  for (uint32_t i = 1; i <= 64; ++i) {
    ends.push_back(sinks.emplace_back(std::make_unique<Sink>(network, i)).get());
  }
  WireDumbbell(network, ends, 32, {}, {.bits_per_second = 3'200'000'000'000});
  const auto from = std::chrono::steady_clock::now();
  uint64_t packets = 0;
  for (int round = 0; round < 100; ++round) {
    for (uint32_t i = 0; i < 32; ++i) {
      for (int k = 0; k < 16; ++k) sinks[i]->Send(33 + i, 1000);
    }
    packets += 32 * 16;
    network.RunFor(Microseconds(20));
  }
  network.RunFor(Milliseconds(1));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  std::printf("%.2f M packets/s over 3 links each, %.0f ns a link\n",
              static_cast<double>(packets) / took.count() / 1e6,
              took.count() * 1e9 / static_cast<double>(network.deliveries()));
  EXPECT_EQ(network.deliveries(), packets * 3);
}

}  // namespace
}  // namespace rocegw::sim
