// SPDX-License-Identifier: Apache-2.0
// IPv4 IDs that count as strays: those near no other ID of their source, before and after.
#include "gateway/worker/receive/ip_id_watch.h"

#include <gtest/gtest.h>

#include <array>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/worker/worker.h"
#include "tests/support/network/port_fixture.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using worker::IpIdWatch;

constexpr uint32_t kSource = 0xC0000201;

class IpIds : public ::testing::Test {
 protected:
  uint32_t See(uint16_t id, Duration after = Microseconds(2), uint32_t source = kSource) {
    now_ = now_ + after;
    return watch_.Observe(source, id, now_);
  }
  // Observes a second of ordinary packets from `id` on: long enough for every decision.
  uint32_t SeeMany(uint16_t id) {
    uint32_t strays = 0;
    for (int i = 0; i < 11000; ++i) strays += See(id++, Microseconds(100));
    next_ = id;
    return strays;
  }

  IpIdWatch watch_;
  TimePoint now_{5000000000};
  uint16_t next_ = 0;
};

TEST_F(IpIds, OneSequence_AroundTheWrap_NoStrays) {
  EXPECT_EQ(SeeMany(65000), 0u);
  EXPECT_EQ(SeeMany(next_), 0u);
}

TEST_F(IpIds, FarFromAll_CountedOnceWhenNothingFollows) {
  EXPECT_EQ(SeeMany(100), 0u);
  EXPECT_EQ(See(40000), 0u) << "it may be the first of many";
  EXPECT_EQ(SeeMany(next_), 1u);
  EXPECT_EQ(SeeMany(next_), 0u);
}

TEST_F(IpIds, StrayAtEitherDistance_JustNearAndJustFar) {
  for (const int distance : {-20000, -400, 400, 20000}) {
    SeeMany(30000);
    See(static_cast<uint16_t>(next_ - 1 + distance));
    EXPECT_EQ(SeeMany(next_), 1u) << distance;
  }
  for (const int distance : {-250, -1, 0, 250}) {
    SeeMany(30000);
    See(static_cast<uint16_t>(next_ - 1 + distance));
    EXPECT_EQ(SeeMany(next_), 0u) << distance;
  }
}

TEST_F(IpIds, NewSequence_IsNoStray) {
  SeeMany(100);
  See(40000);
  See(40001);
  EXPECT_EQ(SeeMany(next_), 0u);
  EXPECT_EQ(SeeMany(40002), 0u);
}

TEST_F(IpIds, EightSequencesInterleaved_OneStrayAmongThem) {
  uint32_t strays = 0;
  uint16_t id = 0;
  const auto round = [&] {
    for (uint16_t run = 0; run < 7; ++run) {
      strays += See(static_cast<uint16_t>(run * 9000 + id), Microseconds(20));
    }
    ++id;
  };
  for (int i = 0; i < 500; ++i) round();
  EXPECT_EQ(strays, 0u);
  See(63000 + 1500);
  for (int i = 0; i < 7600; ++i) round();
  EXPECT_EQ(strays, 1u);
}

TEST_F(IpIds, MoreSequencesThanFit_NothingIsCounted) {
  uint32_t strays = 0;
  for (uint16_t id = 0; id < 2000; ++id) {
    for (uint16_t run = 0; run < 40; ++run) {
      strays += See(static_cast<uint16_t>(run * 1600 + id), Microseconds(20));
    }
  }
  EXPECT_EQ(strays, 0u);
}

// The kernel numbers the datagrams of a socket from 0 in every call.
TEST_F(IpIds, SegmentNumbers_ReorderedAndLost_NoStrays) {
  Random random(7);
  uint32_t strays = 0;
  for (int i = 0; i < 50000; ++i) {
    strays += See(static_cast<uint16_t>(random.Below(64)), Microseconds(50));
  }
  EXPECT_EQ(strays, 0u);
}

// Traffic to one destination of a host whose counter all its traffic shares.
TEST_F(IpIds, SlowAmongOtherTraffic_NoStrays) {
  Random random(8);
  uint32_t strays = 0;
  uint16_t id = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto wait = static_cast<uint32_t>(random.Below(5000) + 1);
    id = static_cast<uint16_t>(id + random.Below(wait) + 1);
    strays += See(id, Microseconds(wait));
  }
  EXPECT_EQ(strays, 0u);
}

TEST_F(IpIds, AfterSilence_AnythingIsNear) {
  SeeMany(100);
  EXPECT_EQ(See(45000, Milliseconds(70)), 0u);
  EXPECT_EQ(SeeMany(45001), 0u);
}

TEST_F(IpIds, Sources_AreApart) {
  uint32_t strays = 0;
  for (uint16_t id = 0; id < 12000; ++id) {
    for (uint32_t source = 1; source <= 20; ++source) {
      strays += See(static_cast<uint16_t>(id + source * 3000), Microseconds(5), source);
    }
  }
  EXPECT_EQ(strays, 0u);
}

TEST_F(IpIds, MoreSourcesThanPlaces_TheBusyOneStaysWatched) {
  SeeMany(100);
  for (uint32_t source = 1; source <= 5000; ++source) {
    EXPECT_EQ(See(static_cast<uint16_t>(source * 7919), Microseconds(1), source), 0u);
    See(next_++);
  }
  See(static_cast<uint16_t>(next_ + 30000));
  EXPECT_EQ(SeeMany(next_), 1u);
}

// Datagrams made by the test, as a UDP socket returns them.
class SocketLike final : public port::PacketPort {
 public:
  void Arrive(const wire::Path& path, uint16_t ip_id, bool id_visible) {
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kRcAck;
    headers.bth.dest_qpn = Qpn{0x12345};
    const size_t length = wire::EncodeHeaders(headers, bytes_.data());
    wire::SealIcrc(path, ip_id, bytes_.data(), length, {});
    datagram_.meta = {path.source, path.destination, path.source_port};
    datagram_.meta.ip_id_known = id_visible;
    datagram_.meta.ip_id = id_visible ? ip_id : uint16_t{0};
    datagram_.bytes = {bytes_.data(), length + wire::kIcrcLength};
    there_ = true;
  }

  port::PortLimits limits() const override { return {.max_datagram = 256, .burst = 8}; }
  port::TxPacket* Acquire() override { return nullptr; }
  void Release(port::TxPacket*) override {}
  size_t Transmit(std::span<port::TxPacket* const>) override { return 0; }
  bool Flush() override { return true; }
  size_t Receive(std::span<wire::RxDatagram> into) override {
    if (!there_) return 0;
    there_ = false;
    into[0] = datagram_;
    return 1;
  }
  int wake_fd() const override { return -1; }
  const port::PortCounters& counters() const override { return counters_; }

 private:
  std::array<uint8_t, 256> bytes_{};
  wire::RxDatagram datagram_;
  bool there_ = false;
  port::PortCounters counters_;
};

uint64_t JumpsCounted(const wire::Path& path, bool id_visible) {
  SocketLike port;
  worker::WorkerLink link;
  worker::WorkerInbox inbox(1);
  metrics::WorkerCounters counters;
  worker::WorkerOptions options;
  options.ports = {&port};
  options.link = &link;
  options.inboxes = {&inbox};
  options.counters = &counters;
  worker::Worker receiver(options);
  TimePoint now{1000000000};
  for (int i = 0; i < 30000; ++i) {
    now = now + Microseconds(200);
    port.Arrive(path, static_cast<uint16_t>(i % 10000 == 5000 ? 20000 + i : i % 64), id_visible);
    receiver.RunOnce(now);
  }
  EXPECT_EQ(counters.rx_packets.Read(), 30000u);
  EXPECT_EQ(counters.DropCount(metrics::DropReason::k_unknown_qpn), 30000u) << "ICRCs are good";
  return counters.icrc_id_jump_packets.Read();
}

TEST(WorkerIpIds, RecoveredFromTheIcrc_StraysAreCounted) {
  wire::Path path = TestPath();
  EXPECT_EQ(JumpsCounted(path, false), 2u) << "of the third nobody knows yet";
  EXPECT_EQ(JumpsCounted(path, true), 0u) << "what the port saw, the ICRC covered";
  path.source = TestAddress(1, false);
  path.destination = TestAddress(2, false);
  EXPECT_EQ(JumpsCounted(path, false), 0u) << "IPv6 has none";
}

}  // namespace
}  // namespace rocegw::testing
