// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/staged_carrier.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/wire/channel_header.h"
#include "tests/support/channel/channel_pair.h"

namespace rocegw::channel {
namespace {

constexpr TimePoint kNow{1000};
constexpr flow::WindowWaiter kQp{SlotHandle{7, 1}, 3};
constexpr flow::WindowWaiter kOther{SlotHandle{8, 1}, 3};
constexpr WorkerObject kStaged{WorkerObject::Kind::kStagedCarrier, {99, 5}};

class FakeChannel final : public flow::Carrier {
 public:
  FakeChannel() {
    address_.channel = Qpn{0x1234};
    address_.epoch = 77;
    address_.flags = wire::kFrameAckNow;
    address_.path.source_port = 50000;
  }
  flow::CarrierAddress address() const override { return address_; }
  const wire::Gid& peer() const override { return peer_; }
  Qpn number() const override { return Qpn{5}; }
  uint32_t max_payload() const override { return 4096; }
  bool MaySend(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, uint32_t,
               TimePoint) override {
    EXPECT_EQ(waiter.object, kStaged);
    entry.waiting = !open;
    return open;
  }
  bool MaySendLast(TimePoint) override { return open; }
  Psn OnSent(const flow::WindowWaiter&, flow::WaitEntry&, const flow::FrameRef& frame, uint32_t,
             TimePoint) override {
    sent.push_back(frame);
    return Psn(1000 + static_cast<uint32_t>(sent.size()) - 1);
  }
  bool HasArrived(Psn psn) const override { return PsnBefore(psn, Psn(1000 + arrived)); }
  void ReportArrivals() override {}
  void Hold() override { ++holds; }
  void Release() override { --holds; }

  bool open = true;
  uint32_t arrived = 0;
  int holds = 0;
  std::vector<flow::FrameRef> sent;

 private:
  flow::CarrierAddress address_;
  wire::Gid peer_;
};

class StagedCarrierTest : public ::testing::Test {
 protected:
  StagedCarrierTest() { session_.busy = &busy_; }

  // Enters a frame as a queue pair does, with payload bytes of this value.
  StagedFrame& Enter(uint32_t message, uint16_t length, uint8_t value,
                     const flow::WindowWaiter& waiter = kQp) {
    StagedFrame& packet = staged_.NewFrame(length);
    flow::FrameRef ref{.owner = waiter.object, .message = message, .length = length};
    flow::WaitEntry entry;
    const Psn psn = staged_.OnSent(waiter, entry, ref, length, kNow);
    wire::ChannelFrame frame{.kind = wire::FrameKind::kSend,
                             .destination = Qpn{20},
                             .source = Qpn{21},
                             .message = message,
                             .length = length};
    frame.flags = wire::kFrameLast;
    size_t at = staged_.address().EncodeBth(psn, -uint32_t{length} & 3, packet.data);
    at += wire::EncodeFrame(frame, packet.data + at);
    packet.length = static_cast<uint32_t>(at) + length + (-uint32_t{length} & 3);
    std::memset(packet.data + at, 0, packet.length - at);
    std::memset(packet.data + at, value, length);
    return packet;
  }
  // Returns the next frame that leaves; empty: none.
  std::vector<uint8_t> Leave() {
    if (staged_.Next() == nullptr || !staged_.MayLeave(kNow)) return {};
    staged_.Leave(packet_, kNow);
    return {packet_.data, packet_.data + packet_.length};
  }

  FakeChannel channel_;
  std::vector<StagedCarrier*> busy_;
  StagedOfSession session_;
  StagedCarrier staged_{channel_, {kStaged, 3}, 0, session_};
  std::array<uint8_t, 8192> bytes_;
  port::TxPacket packet_{.data = bytes_.data()};
};

TEST_F(StagedCarrierTest, FrameWithoutItsBytes_TakesNoPlaceOnTheChannel) {
  StagedFrame& first = Enter(1, 100, 0xAA);
  StagedFrame& second = Enter(2, 100, 0xBB);
  staged_.OnReady(second);
  EXPECT_TRUE(Leave().empty());
  EXPECT_TRUE(channel_.sent.empty());
  staged_.OnReady(first);
  EXPECT_FALSE(Leave().empty());
  EXPECT_FALSE(Leave().empty());
  EXPECT_EQ(channel_.sent.size(), 2u);
}

TEST_F(StagedCarrierTest, WhatLeaves_IsTheFrame_WithWhatTheChannelSays) {
  staged_.OnReady(Enter(9, 101, 0xAA));
  Leave();
  const testing::ChannelPacket left = testing::Sealed(packet_);
  const wire::RxPacket arrived = left.Decoded();
  EXPECT_EQ(arrived.headers.bth.psn, Psn(1000));
  EXPECT_EQ(arrived.headers.bth.dest_qpn, Qpn{0x1234});
  wire::ChannelFrame frame;
  std::span<const uint8_t> payload;
  ASSERT_EQ(wire::DecodeFrame(arrived.payload, frame, payload), metrics::DropReason::kNone);
  EXPECT_EQ(frame.epoch, 77);
  EXPECT_EQ(frame.flags, wire::kFrameLast | wire::kFrameAckNow);
  EXPECT_EQ(frame.message, 9u);
  ASSERT_EQ(payload.size(), 101u);
  for (const uint8_t byte : payload) EXPECT_EQ(byte, 0xAA);
  EXPECT_EQ(packet_.path.source_port, 50000);
  ASSERT_EQ(channel_.sent.size(), 1u);
  EXPECT_EQ(channel_.sent[0].owner, kStaged);
}

TEST_F(StagedCarrierTest, LostFrame_IsSentAgainFromWhatWasKept) {
  staged_.OnReady(Enter(1, 64, 0xAA));
  staged_.OnReady(Enter(2, 64, 0xBB));
  const std::vector<uint8_t> first = Leave();
  Leave();
  const uint32_t number = channel_.sent[0].message;
  ASSERT_NE(staged_.Sent(number), nullptr);
  EXPECT_EQ(staged_.Sent(number)->message, 1u);
  EXPECT_EQ(staged_.Sent(number)->owner, kQp.object);
  staged_.SendAgain(number, Psn(1000), packet_);
  EXPECT_EQ(std::vector<uint8_t>(packet_.data, packet_.data + packet_.length), first);
  channel_.arrived = 1;
  EXPECT_TRUE(staged_.Forget());
  EXPECT_EQ(staged_.Sent(number), nullptr);
  EXPECT_NE(staged_.Sent(channel_.sent[1].message), nullptr);
}

TEST_F(StagedCarrierTest, Arrival_IsThatOfItsOwnNumbers) {
  StagedFrame& frame = Enter(1, 64, 0);
  const Psn first{0};
  staged_.OnReady(frame);
  EXPECT_FALSE(staged_.HasArrived(first));
  Leave();
  staged_.Forget();
  EXPECT_FALSE(staged_.HasArrived(first));
  channel_.arrived = 1;
  staged_.Forget();
  EXPECT_TRUE(staged_.HasArrived(first));
  EXPECT_EQ(session_.bytes, 0u);
}

TEST_F(StagedCarrierTest, MemoryThatIsNotThere_ItsFrameNeverLeaves_AndOthersDo) {
  StagedFrame& gone = Enter(1, 64, 0);
  gone.length = 0;
  staged_.OnReady(gone);
  staged_.OnReady(Enter(2, 64, 0));
  ASSERT_NE(staged_.Next(), nullptr);
  EXPECT_EQ(staged_.Next()->message, 1u) << "for who is told that it never leaves";
  EXPECT_TRUE(staged_.NextIsEmpty());
  staged_.DropNext();
  ASSERT_NE(staged_.Next(), nullptr);
  EXPECT_FALSE(staged_.NextIsEmpty());
  EXPECT_FALSE(Leave().empty());
  ASSERT_EQ(channel_.sent.size(), 1u);
  EXPECT_EQ(staged_.Sent(channel_.sent[0].message)->message, 2u);
}

TEST_F(StagedCarrierTest, WithoutRoom_WaitsForWhatArrives) {
  flow::WaitEntry entry;
  flow::WaitEntry others;
  uint32_t entered = 0;
  while (staged_.MaySend(kQp, entry, 4096, kNow)) {
    staged_.OnReady(Enter(entered++, 4096, 0));
    ASSERT_LT(entered, 1000u);
  }
  EXPECT_TRUE(entry.waiting);
  EXPECT_FALSE(staged_.MaySend(kOther, others, 4096, kNow));
  EXPECT_FALSE(staged_.HasTurn(0));
  EXPECT_LE(session_.bytes, StagedCarrier::kMostHere);
  for (uint32_t i = 0; i < entered; ++i) Leave();
  channel_.arrived = 3;
  staged_.Forget();
  ASSERT_TRUE(staged_.HasTurn(0));
  EXPECT_EQ(staged_.NextTurn(), kQp.object);
  EXPECT_FALSE(staged_.HasTurn(1)) << "room for one turn";
  channel_.arrived = entered;
  staged_.Forget();
  ASSERT_TRUE(staged_.HasTurn(1));
  EXPECT_EQ(staged_.NextTurn(), kOther.object);
}

TEST_F(StagedCarrierTest, SessionWithoutRoom_WaitsOnOtherChannelsToo) {
  session_.bytes = StagedCarrier::kMostOfSession;
  flow::WaitEntry entry;
  EXPECT_FALSE(staged_.MaySend(kQp, entry, 0, kNow));
  ASSERT_EQ(busy_.size(), 1u) << "it is among those that are looked at";
  session_.bytes = 0;
  EXPECT_TRUE(staged_.HasTurn(0));
}

// Peers that take nothing must not stop the session's traffic to others.
TEST_F(StagedCarrierTest, HalfOfTheSession_IsForChannelsWithLittle) {
  flow::WaitEntry entry;
  session_.bytes = StagedCarrier::kMostOfSession / 2;
  uint32_t entered = 0;
  while (staged_.MaySend(kQp, entry, 4096, kNow)) {
    staged_.OnReady(Enter(entered++, 4096, 0));
    ASSERT_LT(entered, 1000u);
  }
  EXPECT_GE(session_.bytes, StagedCarrier::kMostOfSession / 2 + StagedCarrier::kLittle);
  EXPECT_LE(session_.bytes, StagedCarrier::kMostOfSession / 2 + StagedCarrier::kLittle + 8192);
}

// A frame without payload costs its description.
TEST_F(StagedCarrierTest, ShortFrames_CountWithTheirHeap) {
  flow::WaitEntry entry;
  uint32_t entered = 0;
  while (staged_.MaySend(kQp, entry, 0, kNow)) staged_.OnReady(Enter(entered++, 0, 0));
  EXPECT_LE(entered, StagedCarrier::kMostHere / sizeof(channel::StagedFrame));
}

TEST_F(StagedCarrierTest, ChannelClosed_StandsInItsLine) {
  staged_.OnReady(Enter(1, 64, 0));
  channel_.open = false;
  EXPECT_TRUE(Leave().empty());
  EXPECT_TRUE(staged_.in_line());
  channel_.open = true;
  staged_.OnTurn();
  EXPECT_FALSE(staged_.in_line());
  EXPECT_FALSE(Leave().empty());
}

TEST_F(StagedCarrierTest, HoldsTheChannel_AsLongAsItIsNeeded) {
  EXPECT_EQ(channel_.holds, 0);
  staged_.Hold();
  staged_.Hold();
  EXPECT_EQ(channel_.holds, 1);
  staged_.OnReady(Enter(1, 64, 0));
  staged_.Release();
  staged_.Release();
  EXPECT_EQ(channel_.holds, 1) << "a frame is under way";
  Leave();
  channel_.arrived = 1;
  staged_.Forget();
  EXPECT_EQ(channel_.holds, 0);
  EXPECT_FALSE(staged_.busy());
  EXPECT_FALSE(staged_.over()) << "its session may go on to use it";
}

TEST_F(StagedCarrierTest, ChannelGone_NothingLeaves_AndWhatIsBeingReadHasAPlace) {
  staged_.OnReady(Enter(1, 64, 0));
  Leave();
  staged_.OnReady(Enter(2, 64, 0));
  StagedFrame& reading = Enter(3, 64, 0);
  staged_.OnChannelGone();
  EXPECT_EQ(channel_.holds, 0);
  EXPECT_EQ(staged_.Next(), nullptr);
  EXPECT_EQ(staged_.Sent(channel_.sent[0].message), nullptr);
  flow::WaitEntry entry;
  EXPECT_FALSE(staged_.MaySend(kQp, entry, 64, kNow));
  EXPECT_FALSE(staged_.over());
  std::memset(reading.data, 1, 64);
  staged_.OnReady(reading);
  EXPECT_TRUE(staged_.over());
  EXPECT_EQ(session_.bytes, 0u);
}

TEST_F(StagedCarrierTest, SessionGone_WhatWasSentIsSentAgain_AndNothingElseLeaves) {
  staged_.OnReady(Enter(1, 64, 0xAA));
  Leave();
  staged_.OnReady(Enter(2, 64, 0));
  Enter(3, 64, 0);
  staged_.OnSessionGone();
  EXPECT_EQ(session_.bytes, 0u);
  EXPECT_EQ(staged_.Next(), nullptr);
  ASSERT_NE(staged_.Sent(channel_.sent[0].message), nullptr);
  EXPECT_EQ(channel_.holds, 1);
  channel_.arrived = 1;
  staged_.Forget();
  EXPECT_EQ(channel_.holds, 0);
  EXPECT_TRUE(staged_.over());
}

// A program whose memory blocks its copier may outlive many channels.
TEST_F(StagedCarrierTest, CarrierThatOutlivesItsChannel_IsCharged) {
  StagedFrame& reading = Enter(1, 64, 0xAA);
  const size_t bytes = session_.bytes;
  staged_.OnChannelGone();
  EXPECT_EQ(session_.bytes, bytes + StagedCarrier::kHeapOfCarrier);
  staged_.OnReady(reading);
  EXPECT_EQ(session_.bytes, 0u);
}

TEST_F(StagedCarrierTest, SessionOfACarrierWithoutChannel_GetsItsHeapBack) {
  Enter(1, 64, 0xAA);
  staged_.OnChannelGone();
  staged_.OnSessionGone();
  EXPECT_EQ(session_.bytes, 0u);
  EXPECT_TRUE(staged_.over());
}

// Writes the state of a carrier and reads it into another one of the same channel and session.
std::string HandedOver(StagedCarrier& from, StagedCarrier& to) {
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, kNow, versions);
  from.HandOver(out);
  if (!out.ok()) return out.failure();
  hand_over::StateStream in(bytes, kNow);
  to.HandOver(in);
  return in.ok() ? "" : in.failure();
}

TEST_F(StagedCarrierTest, HandedOver_SendsTheSameBytesInTheSameOrder) {
  for (uint32_t message = 1; message <= 3; ++message)
    staged_.OnReady(Enter(message, 100, static_cast<uint8_t>(0xA0 + message)));
  const std::vector<uint8_t> first = Leave();
  const size_t bytes = session_.bytes;
  StagedOfSession session{.busy = &busy_};
  StagedCarrier successor(channel_, {kStaged, 3}, 0, session);
  ASSERT_EQ(HandedOver(staged_, successor), "");
  EXPECT_EQ(session.bytes, bytes);
  EXPECT_TRUE(successor.listed());
  // The lost frame is sent again from the bytes that were handed over.
  const uint32_t number = channel_.sent.back().message;
  ASSERT_NE(successor.Sent(number), nullptr);
  successor.SendAgain(number, Psn(1000), packet_);
  EXPECT_EQ(std::vector<uint8_t>(packet_.data, packet_.data + packet_.length), first);
  for (uint32_t message = 2; message <= 3; ++message) {
    ASSERT_NE(successor.Next(), nullptr);
    EXPECT_EQ(successor.Next()->message, message);
    ASSERT_TRUE(successor.MayLeave(kNow));
    successor.Leave(packet_, kNow);
    EXPECT_EQ(packet_.data[packet_.length - 1], 0xA0 + message);
  }
  channel_.arrived = 3;
  EXPECT_TRUE(successor.Forget());
  EXPECT_EQ(session.bytes, 0u);
}

TEST_F(StagedCarrierTest, WithFramesAtACopier_IsNotHandedOver) {
  Enter(1, 100, 0xAA);
  StagedCarrier successor(channel_, {kStaged, 3}, 0, session_);
  EXPECT_EQ(HandedOver(staged_, successor), "memory is being read");
}

}  // namespace
}  // namespace rocegw::channel
