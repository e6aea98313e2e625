// SPDX-License-Identifier: Apache-2.0
// Discovery datagrams on their way through a worker: a flood of one source, or of many, ends in the
// worker and leaves the control thread to the members of the fleet and to other sources.
#include <gtest/gtest.h>

#include <array>

#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/worker.h"

namespace rocegw::testing::questions {
namespace {

constexpr size_t kBytes = 512;

class MadPort final : public port::PacketPort {
 public:
  // A question of that address, or a message of the connection manager.
  void Arrive(const wire::Gid& source, uint8_t management_class) {
    const wire::Path path{.source = source, .destination = wire::Gid::FromV4(0xC0000201)};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kUdSendOnly;
    headers.bth.dest_qpn = kGsiQpn;
    headers.deth.qkey = wire::kGsiQkey;
    headers.deth.source_qpn = kGsiQpn;
    size_t length = wire::EncodeHeaders(headers, bytes_.data());
    wire::GatewayMad question;
    question.info.instance = 1;
    question.info.features = wire::kOptionPresent;
    wire::MadBytes mad;
    wire::EncodeGatewayMad(question, wire::kDefaultVendorId, mad);
    mad[1] = management_class;
    std::copy(mad.begin(), mad.end(), bytes_.begin() + static_cast<ptrdiff_t>(length));
    length += mad.size();
    wire::SealIcrc(path, 7, bytes_.data(), length, {});
    datagram_.meta = {path.source, path.destination, path.source_port};
    datagram_.meta.ip_id_known = true;
    datagram_.meta.ip_id = 7;
    datagram_.bytes = {bytes_.data(), length + wire::kIcrcLength};
    there_ = true;
  }

  port::PortLimits limits() const override { return {.max_datagram = kBytes, .burst = 8}; }
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
  std::array<uint8_t, kBytes> bytes_{};
  wire::RxDatagram datagram_;
  bool there_ = false;
  port::PortCounters counters_;
};

class QuestionsTest : public ::testing::Test {
 protected:
  static worker::WorkerOptions OptionsOf(QuestionsTest& test) {
    worker::WorkerOptions options;
    options.ports = {&test.port_};
    options.link = &test.link_;
    options.inboxes = {&test.inbox_};
    options.counters = &test.counters_;
    options.secret = {11, 22};
    return options;
  }
  static wire::Gid Stranger(uint32_t number) { return wire::Gid::FromV4(0x0A000000 + number); }
  // True: the control thread got the datagram.
  bool Arrives(const wire::Gid& source, uint8_t management_class = wire::kMadClassGateway) {
    port_.Arrive(source, management_class);
    worker_.RunOnce(now_);
    worker::WorkerMessage message;
    bool got = false;
    while (link_.to_control.Pop(message))
      got |= std::holds_alternative<worker::MadReceived>(message.body);
    return got;
  }
  uint32_t Arrived(const wire::Gid& source, uint32_t count) {
    uint32_t arrived = 0;
    for (uint32_t i = 0; i < count; ++i) arrived += Arrives(source) ? 1 : 0;
    return arrived;
  }
  void Tell(worker::ControlMessage message) {
    ASSERT_TRUE(link_.to_worker.Push(std::move(message)));
    worker_.RunOnce(now_);
  }

  MadPort port_;
  worker::WorkerLink link_;
  worker::WorkerInbox inbox_{1};
  metrics::WorkerCounters counters_;
  worker::Worker worker_{OptionsOf(*this)};
  TimePoint now_{1'000'000'000};
};

TEST_F(QuestionsTest, OneSourceThatFloods_GetsItsShareAndOthersTheirs) {
  EXPECT_EQ(Arrived(Stranger(1), 10000), 128u);
  EXPECT_EQ(counters_.DropCount(metrics::DropReason::k_mad_rate), 10000u - 128u);
  EXPECT_EQ(Arrived(Stranger(2), 100), 100u);
  now_ = now_ + Seconds(1);
  EXPECT_EQ(Arrived(Stranger(1), 1000), 100u);
}

TEST_F(QuestionsTest, ManySourcesThatFlood_LeaveTheMembersAlone) {
  const wire::Gid member = wire::Gid::FromV4(0xC0000207);
  Tell({0, worker::NameMember{member, true}});
  uint32_t arrived = 0;
  for (uint32_t i = 0; i < 10000; ++i) arrived += Arrives(Stranger(i)) ? 1 : 0;
  EXPECT_LE(arrived, 1024u);
  EXPECT_FALSE(Arrives(Stranger(20000)));
  EXPECT_EQ(Arrived(member, 1000), 128u);
}

TEST_F(QuestionsTest, FloodThatGoesOn_LeavesMembersAndAskedPeersAlone) {
  const wire::Gid member = wire::Gid::FromV4(0xC0000207);
  const wire::Gid peer = wire::Gid::FromV4(0xC0000208);
  Tell({0, worker::NameMember{member, true}});
  Tell({0, worker::KnowPeer{peer, true}});
  uint32_t answers = 0;
  uint32_t number = 0;
  for (int ms = 0; ms < 1000; ++ms, now_ = now_ + Milliseconds(1)) {
    for (int i = 0; i < 200; ++i) (void)Arrives(Stranger(++number % 65536));
    if (ms % 20 == 0) answers += (Arrives(member) ? 1 : 0) + (Arrives(peer) ? 1 : 0);
  }
  EXPECT_GT(counters_.DropCount(metrics::DropReason::k_flood), 100'000u);
  EXPECT_EQ(answers, 100u);
}

TEST_F(QuestionsTest, ManySourcesThatFlood_LeaveThePeersAloneThatAreKnown) {
  const wire::Gid peer = wire::Gid::FromV4(0xC0000208);
  Tell({0, worker::KnowPeer{peer, true}});
  for (uint32_t i = 0; i < 10000; ++i) Arrives(Stranger(i));
  EXPECT_EQ(Arrived(peer, 1000), 128u);
  now_ = now_ + Seconds(1);
  Tell({0, worker::KnowPeer{peer, false}});
  for (uint32_t i = 0; i < 10000; ++i) Arrives(Stranger(i));
  EXPECT_FALSE(Arrives(peer));
}

constexpr uint8_t kCommunicationManagement = 7;

// A port that cannot filter leaves it to the worker.
TEST_F(QuestionsTest, FloodOfConnectionRequests_IsDroppedUnseenAndLeavesOthersAlone) {
  uint32_t arrived = 0;
  const auto flood = [&](Duration time) {
    for (const TimePoint end = now_ + time; now_ < end; now_ = now_ + Milliseconds(1))
      for (int i = 0; i < 400; ++i)
        arrived += Arrives(Stranger(1), kCommunicationManagement) ? 1 : 0;
  };
  flood(Milliseconds(200));
  const uint64_t unseen = counters_.DropCount(metrics::DropReason::k_flood);
  EXPECT_GT(unseen, 0u);
  arrived = 0;
  flood(Milliseconds(500));
  EXPECT_LT(arrived, 200'000u / 8);
  EXPECT_EQ(counters_.DropCount(metrics::DropReason::k_flood) - unseen, 200'000u - arrived);
  uint32_t others = 0;
  for (uint32_t i = 2; i < 102; ++i)
    others += Arrives(Stranger(i), kCommunicationManagement) ? 1 : 0;
  EXPECT_GT(others, 80u) << "all but those of the same bucket";
  now_ = now_ + Seconds(1);
  worker_.RunOnce(now_);
  worker_.RunOnce(now_ + Seconds(1));
  EXPECT_TRUE(Arrives(Stranger(1), kCommunicationManagement));
}

TEST_F(QuestionsTest, MessagesOfTheConnectionManager_AreNotBoundByIt) {
  EXPECT_EQ(Arrived(Stranger(1), 1000), 128u);
  EXPECT_TRUE(Arrives(Stranger(1), kCommunicationManagement));
}

}  // namespace
}  // namespace rocegw::testing::questions
