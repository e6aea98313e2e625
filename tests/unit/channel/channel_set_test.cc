// SPDX-License-Identifier: Apache-2.0
// Life of channels: handshake, simultaneous and lost openings, refusal, restart of the peer, idle
// close, path changes, loss, wait queues, and packets of strangers.
#include "gateway/channel/channel_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/channel/channel_pair.h"

namespace rocegw::testing::channel_set {
namespace {

using channel::Acks;
using channel::Channel;
using channel::ChannelState;
using metrics::DropReason;
using wire::ChannelReason;
using wire::ControlKind;
using wire::Operation;

using Numbers = std::vector<uint32_t>;

size_t CountOf(const std::deque<ChannelPacket>& packets, ControlKind kind) {
  return static_cast<size_t>(std::count_if(packets.begin(), packets.end(),
                                           [&](const ChannelPacket& p) { return p.Is(kind); }));
}

class ChannelSetTest : public ::testing::Test {
 protected:
  Channel* OpenAndSend(uint32_t message) {
    Channel* channel = pair.Open();
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
    pair.Settle();
    return channel;
  }
  // Opens a channel that is in use; its peer has not heard of it.
  static Channel* Begun(ChannelPair& between, ChannelEnd& from, const ChannelEnd& to) {
    Channel* channel = from.Reach(to, between.now);
    from.Hold(channel);
    return channel;
  }
  Channel* Begun() { return Begun(pair, pair.a(), pair.b()); }
  ChannelPair pair;
};

TEST_F(ChannelSetTest, Reach_OpensOnceAndEverybodySharesIt) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), channel);
  EXPECT_EQ(channel->state(), ChannelState::kOpening);
  pair.a().Hold(channel);
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), channel);
  // The other end's queue pairs have the channel already.
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_EQ(back->number(), channel->peer_number());
  EXPECT_EQ(back->peer_number(), channel->number());
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, MaxPayload_IsWhatFitsBehindTheLongestHeaderOfAPayload) {
  // Interfaces of 4200 bytes behind IPv4 and IPv6, of 1500 and of 9000.
  uint8_t traffic_class = 0;
  for (const auto& [datagram, payload] :
       {std::pair{4172U, 4096U}, {4152U, 4032U}, {1472U, 1408U}, {8972U, 4096U}}) {
    pair.a().max_datagram = datagram;
    EXPECT_EQ(pair.a().Reach(pair.b(), pair.now, traffic_class)->max_payload(), payload)
        << datagram;
    traffic_class += 4;
  }
}

TEST_F(ChannelSetTest, AnotherClass_AnotherChannel) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now, 0);
  EXPECT_NE(pair.a().Reach(pair.b(), pair.now, 26 << 2), channel);
}

TEST_F(ChannelSetTest, BeforeUse_NothingIsOpenedOrTaken) {
  ChannelPair other(ChannelPair::OptionsOf(0), channel::ChannelOptions());
  EXPECT_EQ(other.b().Reach(other.a(), other.now), nullptr);
  other.a().Reach(other.b(), other.now);
  other.Settle();
  EXPECT_EQ(other.last_drop, DropReason::k_unknown_channel);
}

TEST_F(ChannelSetTest, Frames_DeliveredOnceAndAcknowledged) {
  Channel* channel = OpenAndSend(7);
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.b().delivered, (Numbers{7}));
  EXPECT_TRUE(channel->out().idle()) << "acknowledged";
  // The opposite direction on the same channel.
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  EXPECT_TRUE(pair.b().Send(*back, 8, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{8}));
}

TEST_F(ChannelSetTest, BeforeItIsOpen_SendersStandInLineAndComeWhenItIs) {
  Channel* channel = Begun();
  EXPECT_FALSE(pair.a().Send(*channel, 1, pair.now, 5));
  EXPECT_FALSE(pair.a().Send(*channel, 1, pair.now, 5)) << "it stands in it once";
  EXPECT_FALSE(pair.a().Send(*channel, 2, pair.now, 6));
  pair.Settle();
  EXPECT_EQ(pair.a().turns, (Numbers{5, 6}));
}

TEST_F(ChannelSetTest, FirstStepLost_SentAgainWithGrowingWaits) {
  Channel* channel = Begun();
  std::vector<TimePoint> opens;
  pair.Advance(Milliseconds(100), [&](const ChannelPacket& packet) {
    if (!packet.Is(ControlKind::kOpen)) return false;
    opens.push_back(pair.now);
    return opens.size() < 4;
  });
  ASSERT_EQ(opens.size(), 4u);
  EXPECT_LT(opens[2] - opens[1], opens[3] - opens[2]);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, AnswerLost_GivenAgainForTheSameChannel) {
  Channel* channel = Begun();
  int answers = 0;
  pair.Advance(Milliseconds(100), [&](const ChannelPacket& packet) {
    return packet.Is(ControlKind::kOpened) && ++answers < 3;
  });
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, AllAnswersLost_ProbesOfThePeerSayThatItIsThere) {
  Channel* channel = Begun();
  const TimePoint until = pair.now + Milliseconds(500);
  const auto lose = [&](const ChannelPacket& packet) {
    return packet.Is(ControlKind::kOpened) && pair.now < until;
  };
  pair.Advance(Milliseconds(1), lose);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_TRUE(pair.b().Send(*back, 7, pair.now));
  pair.Advance(Milliseconds(1000), lose);
  EXPECT_EQ(pair.a().gone, 0);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().delivered, (Numbers{7}));
}

TEST_F(ChannelSetTest, BothBegin_OneChannel) {
  Channel* of_a = Begun();
  Channel* of_b = Begun(pair, pair.b(), pair.a());
  pair.Settle();
  EXPECT_EQ(of_a->state(), ChannelState::kOpen);
  EXPECT_EQ(of_b->state(), ChannelState::kOpen);
  EXPECT_EQ(of_a->peer_number(), of_b->number());
  EXPECT_EQ(of_b->peer_number(), of_a->number());
  EXPECT_EQ(pair.a().counters.channel_open_events.Read(), 1u);
  EXPECT_TRUE(pair.a().Send(*of_a, 1, pair.now));
  EXPECT_TRUE(pair.b().Send(*of_b, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{2}));
  EXPECT_EQ(pair.b().delivered, (Numbers{1}));
}

TEST_F(ChannelSetTest, BothBeginAndOneFirstStepIsLost_OneChannel) {
  Channel* of_a = Begun();
  Channel* of_b = Begun(pair, pair.b(), pair.a());
  bool lost = false;
  pair.Advance(Milliseconds(50), [&](const ChannelPacket& packet) {
    if (lost || !packet.Is(ControlKind::kOpen)) return false;
    return lost = true;
  });
  EXPECT_EQ(of_a->peer_number(), of_b->number());
  EXPECT_EQ(of_b->peer_number(), of_a->number());
  EXPECT_EQ(pair.b().counters.channel_open_events.Read(), 1u);
}

TEST_F(ChannelSetTest, PeerWithoutNumbers_Refuses) {
  channel::ChannelOptions none = ChannelPair::OptionsOf(1);
  none.numbers.clear();
  ChannelPair other(ChannelPair::OptionsOf(0), none);
  Begun(other, other.a(), other.b());
  other.Settle();
  EXPECT_EQ(other.a().gone, 1);
  EXPECT_EQ(other.a().counters.channel_close_events.Read(), 1u);
  EXPECT_NE(other.a().Reach(other.b(), other.now), nullptr) << "one may try again";
}

TEST_F(ChannelSetTest, NothingInCommon_RefusesAndNothingWasOpen) {
  channel::ChannelOptions plain = ChannelPair::OptionsOf(1);
  plain.features &= ~uint32_t{wire::kOptionSelectiveAck};
  ChannelPair other(ChannelPair::OptionsOf(0), plain);
  Begun(other, other.a(), other.b());
  other.Settle();
  EXPECT_EQ(other.a().gone, 1);
  EXPECT_FALSE(other.a().opened);
  EXPECT_EQ(other.a().why, wire::ChannelReason::kUnsupported);
  EXPECT_EQ(other.b().counters.channel_open_events.Read(), 0u);
}

TEST_F(ChannelSetTest, PeerThatNeverAnswers_IsGivenUp) {
  Begun();
  int opens = 0;
  const auto lose = [&](const ChannelPacket& packet) {
    opens += packet.Is(ControlKind::kOpen) ? 1 : 0;
    return true;
  };
  pair.Settle(lose);
  for (int i = 0; i < 400 && pair.a().gone == 0; ++i) {
    pair.now = pair.now + Milliseconds(1);
    pair.Settle(lose);
  }
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_FALSE(pair.a().opened);
  EXPECT_EQ(pair.a().why, wire::ChannelReason::kPathFailed);
  EXPECT_EQ(opens, 6);
}

TEST_F(ChannelSetTest, KindOfCongestionControl_IsTheBestThatBothHave) {
  channel::ChannelOptions some = ChannelPair::OptionsOf(1);
  some.features &= ~uint32_t{wire::kOptionCcHint};
  ChannelPair other(ChannelPair::OptionsOf(0), some);
  Channel* channel = other.a().Reach(other.b(), other.now);
  other.Settle();
  EXPECT_EQ(channel->out().cc_kind(), flow::CcKind::kSwift);
  ASSERT_EQ(other.b().set.Snapshots().size(), 1u);
  EXPECT_EQ(other.b().set.Snapshots()[0].congestion, flow::CcKind::kSwift);
  EXPECT_EQ(channel->address().path.traffic_class & wire::kEcnMask, 0)
      << "marks mean nothing to it";
}

TEST_F(ChannelSetTest, FramesThatAreStampedAndMarked_AreToldBack) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.Settle();
  EXPECT_EQ(channel->out().cc_kind(), flow::CcKind::kCaqm);
  EXPECT_EQ(channel->address().path.traffic_class & wire::kEcnMask, wire::kEcnEct0);
  ASSERT_TRUE(pair.a().Send(*channel, 1, pair.now));
  ASSERT_FALSE(pair.a().sent.empty());
  EXPECT_EQ(pair.a().sent[0].Decoded().headers.bth.hint(), wire::MakeHint(true));
  // Acts as a switch: the ICRC does not cover that byte.
  pair.a().sent[0].bytes[4] = wire::HintOfLevel(33, true);
  uint8_t hint = 0;
  pair.Settle();
  pair.now = pair.now + Milliseconds(1);
  pair.Settle([&](const ChannelPacket& packet) {
    if (!packet.Is(wire::Operation::kChannelAck)) return false;
    EXPECT_EQ(packet.meta.traffic_class & wire::kEcnMask, wire::kEcnEct0);
    wire::ChannelAck ack;
    EXPECT_EQ(wire::DecodeAck(packet.Decoded().payload, ack), metrics::DropReason::kNone);
    hint = ack.hint;
    return false;
  });
  EXPECT_EQ(hint, wire::HintOfLevel(33, true));
}

TEST_F(ChannelSetTest, AcknowledgementsPutOff_LeaveBehindTheFramesOfTheRound) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  ASSERT_TRUE(pair.a().Send(*channel, 2, pair.now));
  // The frame before it is missing, which is reported at once.
  pair.a().sent.clear();
  ASSERT_TRUE(pair.a().Send(*channel, 3, pair.now));
  pair.b().Receive(pair.a().sent.front(), pair.now);
  EXPECT_TRUE(pair.b().set.Run(pair.now, Acks::kLater));
  EXPECT_TRUE(pair.b().sent.empty());
  ASSERT_TRUE(pair.b().Send(*back, 4, pair.now));
  EXPECT_TRUE(pair.b().set.Run(pair.now, Acks::kNow));
  ASSERT_EQ(pair.b().sent.size(), 2U);
  EXPECT_FALSE(pair.b().sent[0].Is(wire::Operation::kChannelAck));
  EXPECT_TRUE(pair.b().sent[1].Is(wire::Operation::kChannelAck));
}

// A new flow may have 16 packets of 4096 bytes in flight.
TEST_F(ChannelSetTest, AQuarterOfTheWindowSent_ItsLastFrameAsksForAnAcknowledgement) {
  Channel* channel = pair.a().Reach(pair.b(), pair.now);
  pair.Settle();
  flow::WaitEntry entry;
  std::vector<uint8_t> flags;
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(channel->MaySend({}, entry, 4096, pair.now));
    channel->OnSent({}, entry, {}, 4096, pair.now);
    flags.push_back(channel->address().flags);
  }
  EXPECT_EQ(std::count(flags.begin(), flags.end(), wire::kFrameAckNow), 2);
  EXPECT_EQ(std::count(flags.begin(), flags.end(), 0), 6);
}

TEST_F(ChannelSetTest, TargetOfAnotherInstance_LeadsToANewChannel) {
  Channel* old = pair.a().Reach(pair.b(), pair.now);
  pair.a().Hold(old);
  pair.Settle();
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), old);
  pair.Restart(1);
  Channel* fresh = pair.a().Reach(pair.b(), pair.now);
  ASSERT_NE(fresh, nullptr);
  EXPECT_NE(fresh, old);
  EXPECT_EQ(pair.a().Reach(pair.b(), pair.now), fresh) << "while the old one is on its way out";
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_TRUE(pair.a().opened);
  EXPECT_EQ(pair.a().why, wire::ChannelReason::kStaleEpoch);
  EXPECT_EQ(fresh->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, OwnNumbersExhausted_NothingUntilOneIsFree) {
  channel::ChannelOptions few = ChannelPair::OptionsOf(0);
  few.numbers.resize(2);
  ChannelPair other(few, ChannelPair::OptionsOf(1));
  Channel* first = other.a().Reach(other.b(), other.now, 0);
  EXPECT_NE(other.a().Reach(other.b(), other.now, 4), nullptr);
  EXPECT_EQ(other.a().Reach(other.b(), other.now, 8), nullptr);
  other.Settle();
  // Unused: closed after a minute.
  EXPECT_EQ(first->state(), ChannelState::kOpen);
  other.Advance(Seconds(61));
  EXPECT_NE(other.a().Reach(other.b(), other.now, 8), nullptr);
}

TEST_F(ChannelSetTest, PeerRestarted_FrameDrawsResetAndTheChannelEnds) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  pair.Restart(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1) << "its users learn of it at once";
  EXPECT_TRUE(pair.b().delivered.empty());
  EXPECT_NE(pair.Open(), nullptr);
}

TEST_F(ChannelSetTest, PeerRestartedAndOpens_TheOldOneEnds) {
  OpenAndSend(1);
  pair.Restart(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  pair.Settle();
  EXPECT_EQ(back->state(), ChannelState::kOpen);
  EXPECT_EQ(pair.a().gone, 0) << "anybody could have said so";
  EXPECT_TRUE(pair.b().Send(*back, 3, pair.now));
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().delivered, (Numbers{3}));
}

// The 16 bits of an epoch in frames can be guessed; both epochs cannot.
TEST_F(ChannelSetTest, ForgedReset_ChangesNothingUnlessItNamesBothEpochs) {
  Channel* channel = OpenAndSend(1);
  const auto reset = [&](uint32_t number, uint32_t epoch, const wire::Gid& from,
                         uint32_t peer_epoch = 0) {
    uint8_t room[256];
    port::TxPacket packet{.data = room};
    wire::Headers headers;
    headers.bth.opcode = wire::Opcode::kChannelControl;
    headers.bth.dest_qpn = channel->number();
    size_t length = wire::EncodeHeaders(headers, packet.data);
    length += wire::EncodeControl({.kind = ControlKind::kReset,
                                   .reason = ChannelReason::kUnknownChannel,
                                   .channel = number,
                                   .epoch = epoch,
                                   .peer_epoch = peer_epoch},
                                  packet.data + length);
    packet.length = static_cast<uint32_t>(length);
    packet.path = {.source = from, .destination = pair.a().gid};
    return pair.a().Receive(Sealed(packet), pair.now);
  };
  const uint32_t number = channel->peer_number().value;
  const uint32_t epoch = channel->peer_epoch();
  EXPECT_EQ(reset(number, epoch ^ 1, pair.b().gid), DropReason::k_channel_epoch);
  EXPECT_EQ(reset(number + 1, epoch, pair.b().gid), DropReason::k_unknown_channel);
  EXPECT_EQ(reset(number, epoch, ChannelPair::GidOf(9)), DropReason::k_unknown_channel);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  EXPECT_EQ(reset(number, epoch & 0xFFFF, pair.b().gid), DropReason::kNone);
  size_t probes = 0;
  pair.Settle([&](const ChannelPacket& packet) {
    probes += packet.Is(ControlKind::kProbe) ? 1 : 0;
    return false;
  });
  EXPECT_EQ(probes, 1u) << "the peer is asked, and has the channel";
  EXPECT_EQ(reset(number, epoch, pair.b().gid, channel->epoch() ^ 0x10000), DropReason::kNone);
  EXPECT_EQ(reset(number, epoch ^ 0x10000, pair.b().gid, channel->epoch()), DropReason::kNone);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 0);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
  EXPECT_EQ(reset(number, epoch, pair.b().gid, channel->epoch()), DropReason::kNone);
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
}

// A reset that answers a frame causes one probe at a time, whoever sends it.
TEST_F(ChannelSetTest, ForgedResets_DrawNoMoreThanOneProbe) {
  Channel* channel = OpenAndSend(1);
  for (int i = 0; i < 100; ++i) channel->Challenge(pair.now);
  channel->Due();
  pair.a().Turn(pair.now);
  EXPECT_EQ(CountOf(pair.a().sent, ControlKind::kProbe), 1u);
}

TEST_F(ChannelSetTest, FrameOfAnotherEpochOrAddress_Dropped) {
  Channel* channel = OpenAndSend(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  ChannelPacket packet = pair.a().sent.front();
  pair.a().sent.clear();
  ChannelPacket elsewhere = packet;
  elsewhere.meta.source = ChannelPair::GidOf(9);
  wire::Path path{.source = elsewhere.meta.source,
                  .destination = pair.b().gid,
                  .source_port = packet.meta.source_port};
  wire::SealIcrc(path, 7, elsewhere.bytes.data(), elsewhere.bytes.size() - wire::kIcrcLength);
  EXPECT_EQ(pair.b().Receive(elsewhere, pair.now), DropReason::k_wrong_address);
  packet.bytes[wire::kBthLength + 3] ^= 1;  // changes the epoch
  path.source = pair.a().gid;
  wire::SealIcrc(path, 7, packet.bytes.data(), packet.bytes.size() - wire::kIcrcLength);
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_epoch);
  EXPECT_EQ(pair.b().delivered, (Numbers{1}));
}

TEST_F(ChannelSetTest, FrameThatCameBefore_NotDeliveredAgain) {
  Channel* channel = pair.Open();
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  const ChannelPacket packet = pair.a().sent.front();
  pair.Settle();
  EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_channel_duplicate);
  EXPECT_EQ(pair.b().delivered, (Numbers{2}));
}

TEST_F(ChannelSetTest, Resets_NoMoreThanTheirRate) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  const ChannelPacket packet = pair.a().sent.front();
  pair.Restart(1);
  // The bucket is full after a while: 64 at once and 1,000 a second.
  pair.now = pair.now + Seconds(10);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(pair.b().Receive(packet, pair.now), DropReason::k_unknown_channel);
    pair.now = pair.now + Microseconds(100);
  }
  const size_t resets = CountOf(pair.b().sent, ControlKind::kReset);
  EXPECT_GE(resets, 560u);
  EXPECT_LE(resets, 566u);
}

TEST_F(ChannelSetTest, UnusedForAMinute_BothEndsClose) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(120));
  EXPECT_EQ(channel->state(), ChannelState::kOpen) << "somebody uses it";
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(61));
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
  EXPECT_EQ(pair.b().counters.channel_close_events.Read(), 1u);
  EXPECT_EQ(pair.Open()->state(), ChannelState::kOpen) << "there may be another one";
}

TEST_F(ChannelSetTest, CloseOfWhatThePeerUses_IsTakenBack) {
  Channel* channel = OpenAndSend(1);
  // Only the other end is idle; this one is held.
  pair.Advance(Seconds(300));
  EXPECT_EQ(pair.b().counters.channel_close_events.Read(), 0u);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
}

TEST_F(ChannelSetTest, CloseThatNobodyAnswers_EndsAllTheSame) {
  Channel* channel = OpenAndSend(1);
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(63), [](const ChannelPacket&) { return true; });
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
}

// A resting channel has no timer.
TEST_F(ChannelSetTest, LastUserLeavesOneAtRest_ClosedAfterAMinute) {
  Channel* channel = OpenAndSend(1);
  pair.b().Hold(pair.b().Reach(pair.a(), pair.now));
  pair.Advance(Seconds(30));
  ASSERT_TRUE(channel->rests());
  channel->Release();
  pair.a().held.clear();
  const auto dark = [](const ChannelPacket&) { return true; };
  pair.Advance(Seconds(59), dark);
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
  pair.Advance(Seconds(3), dark);
  EXPECT_EQ(pair.a().counters.channel_close_events.Read(), 1u);
}

TEST_F(ChannelSetTest, IdleForASecond_RestsAndGoesOnWhereItWas) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  pair.Advance(Milliseconds(500));
  EXPECT_FALSE(channel->rests());
  pair.Advance(Seconds(2));
  EXPECT_TRUE(channel->rests());
  EXPECT_TRUE(back->rests());
  const channel::ChannelBytes bytes = pair.a().set.MeasureBytes();
  EXPECT_EQ(bytes.awake + bytes.in_flight, 0u);
  const channel::ChannelSnapshot before = channel->Snapshot();
  EXPECT_EQ(before.users, 1u);
  EXPECT_GT(before.window, 0u);
  const uint16_t port = channel->source_port();
  // Either end may begin, and both continue with the next PSN.
  EXPECT_TRUE(pair.b().Send(*back, 2, pair.now));
  pair.Settle();
  EXPECT_FALSE(channel->rests());
  EXPECT_TRUE(pair.a().Send(*channel, 3, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().delivered, (Numbers{2}));
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 3}));
  EXPECT_EQ(channel->source_port(), port);
  const channel::ChannelSnapshot after = channel->Snapshot();
  EXPECT_EQ(after.congestion, before.congestion);
  EXPECT_GE(after.window, before.window / 2);
  EXPECT_EQ(after.resent, before.resent);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 0u);
}

TEST_F(ChannelSetTest, LossAfterARest_BuiltAgainUnderItsPsn) {
  Channel* channel = OpenAndSend(1);
  pair.b().Hold(pair.b().Reach(pair.a(), pair.now));
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  int lost = 0;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    return packet.Is(Operation::kChannelFrame) && lost++ == 3;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 11u);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 1u);
}

TEST_F(ChannelSetTest, PeerRestartedDuringARest_FrameDrawsResetAndTheChannelEnds) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  pair.Restart(1);
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_TRUE(pair.b().delivered.empty());
}

// A restarted peer begins with its own opening.
TEST_F(ChannelSetTest, OneAtRestThatIsReplaced_Ends) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Seconds(5));
  ASSERT_TRUE(channel->rests());
  pair.Restart(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.b().Hold(back);
  EXPECT_FALSE(pair.b().Send(*back, 3, pair.now)) << "it is not open yet";
  pair.Settle();
  EXPECT_TRUE(pair.b().Send(*back, 3, pair.now));
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().gone, 1);
  EXPECT_EQ(pair.a().why, ChannelReason::kStaleEpoch);
  EXPECT_EQ(pair.a().delivered, (Numbers{3}));
}

TEST_F(ChannelSetTest, LostFrame_BuiltAgainUnderItsPsn) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  int lost = 0;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    return packet.Is(Operation::kChannelFrame) && lost++ == 3;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 11u);
  EXPECT_EQ(std::set<uint32_t>(pair.b().delivered.begin(), pair.b().delivered.end()).size(), 11u);
  EXPECT_EQ(pair.a().counters.channel_resent_packets.Read(), 1u) << "and nothing else";
  EXPECT_TRUE(channel->out().idle());
}

TEST_F(ChannelSetTest, LostFrameThatNobodyWaitsFor_ItsPsnIsFilled) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  pair.a().forgotten = {10};
  bool lost = false;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || !packet.Is(Operation::kChannelFrame)) return false;
    return lost = true;
  });
  pair.Advance(Milliseconds(10));
  EXPECT_EQ(pair.b().delivered.size(), 10u);
  EXPECT_TRUE(channel->out().idle());
}

TEST_F(ChannelSetTest, ArrivedFrames_AreToldOnceToWhoAskedForIt) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_EQ(pair.a().arrived, Numbers()) << "nobody asked";
  channel->ReportArrivals();
  pair.a().forgotten = {10};
  bool lost = false;
  for (uint32_t message = 10; message < 20; ++message)
    EXPECT_TRUE(pair.a().Send(*channel, message, pair.now));
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || !packet.Is(Operation::kChannelFrame)) return false;
    return lost = true;
  });
  pair.Advance(Milliseconds(10));
  std::ranges::sort(pair.a().arrived);
  EXPECT_EQ(pair.a().arrived, (Numbers{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}))
      << "also the one whose place was filled";
}

TEST_F(ChannelSetTest, Traffic_OfAPeerIncludesChannelsThatAreGone) {
  EXPECT_TRUE(pair.a().set.Traffic().empty());
  const auto send = [&] {
    Channel* channel = pair.Open();
    EXPECT_TRUE(pair.a().Send(*channel, 1, pair.now, 1, 0, 100));
    pair.Settle();
    pair.Advance(Milliseconds(1));
    return channel;
  };
  Channel* channel = send();
  const auto open = pair.a().set.Traffic();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].peer, pair.b().gid);
  EXPECT_EQ(open[0].channels, 1u);
  EXPECT_EQ(open[0].arrived_bytes, 100u);
  EXPECT_EQ(open[0].channels_rtt, 1u);
  channel->Abandon(wire::ChannelReason::kIdle);
  channel->Due();
  pair.Settle();
  const auto gone = pair.a().set.Traffic();
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].channels, 0u);
  EXPECT_EQ(gone[0].arrived_bytes, 100u);
  send();
  EXPECT_EQ(pair.a().set.Traffic()[0].arrived_bytes, 200u);
}

TEST_F(ChannelSetTest, SilentPath_OtherSourcePortAfterSixProbes) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  const uint16_t before = channel->source_port();
  // Everything on that path is lost.
  const auto broken = [&](const ChannelPacket& packet) {
    return packet.meta.source_port == before;
  };
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Seconds(2), broken);
  EXPECT_NE(channel->source_port(), before);
  EXPECT_GE(pair.a().counters.channel_path_change_events.Read(), 1u);
  EXPECT_EQ(pair.b().delivered, (Numbers{1, 2}));
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

// Packets from b are lost, and b itself waits for no answers.
TEST_F(ChannelSetTest, AnswersToProbesAreLost_WhoGivesThemTakesAnotherPort) {
  Channel* channel = OpenAndSend(1);
  Channel* back = pair.b().Reach(pair.a(), pair.now);
  pair.Advance(Milliseconds(1));
  const uint16_t before = back->source_port();
  const auto broken = [&](const ChannelPacket& packet) {
    return packet.meta.source == pair.b().gid && packet.meta.source_port == before;
  };
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Advance(Seconds(2), broken);
  EXPECT_NE(back->source_port(), before);
  EXPECT_TRUE(channel->rests());
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, SeveralPaths_HavePortsOfTheirOwn_AndOneThatFailsTakesThatOfAnother) {
  channel::ChannelOptions with_paths = ChannelPair::OptionsOf(0);
  with_paths.paths = 3;
  ChannelPair pairs(with_paths, ChannelPair::OptionsOf(1));
  Channel* first = pairs.Open();
  std::vector<Channel*> all{first};
  for (uint32_t paths = 1; paths < 3; ++paths)
    all.push_back(pairs.a().set.Beside(*first, paths, pairs.now));
  EXPECT_EQ(pairs.a().set.Beside(*first, 3, pairs.now), nullptr) << "there are no more";
  pairs.Settle();
  std::set<uint16_t> ports;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_NE(all[i], nullptr);
    EXPECT_EQ(pairs.a().set.Beside(*all[i], 3 - i, pairs.now), i == 0 ? nullptr : first);
    EXPECT_TRUE(pairs.a().Send(*all[i], i, pairs.now));
    ports.insert(all[i]->source_port());
  }
  pairs.Settle();
  pairs.Advance(Milliseconds(1));
  EXPECT_EQ(ports.size(), 3u);
  const uint16_t failed = all[1]->source_port();
  EXPECT_TRUE(pairs.a().Send(*all[1], 9, pairs.now));
  pairs.Advance(Seconds(1),
                [&](const ChannelPacket& packet) { return packet.meta.source_port == failed; });
  EXPECT_NE(all[1]->source_port(), failed);
  EXPECT_TRUE(ports.contains(all[1]->source_port()));
  EXPECT_EQ(pairs.b().delivered, (Numbers{0, 1, 2, 9}));
}

TEST_F(ChannelSetTest, SilentPeer_EndsAfterTwentyFourProbes) {
  Channel* channel = OpenAndSend(1);
  pair.Advance(Milliseconds(1));
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  size_t probes = 0;
  const TimePoint begin = pair.now;
  TimePoint end = begin;
  pair.Advance(Seconds(20), [&](const ChannelPacket& packet) {
    if (packet.Is(ControlKind::kProbe)) {
      ++probes;
      end = pair.now;
    }
    return true;
  });
  EXPECT_EQ(probes, 24u);
  EXPECT_GE(end - begin, Seconds(3));
  EXPECT_EQ(pair.a().gone, 1);
}

TEST_F(ChannelSetTest, NoEndpoint_ItsSenderIsToldToTryAgain) {
  Channel* channel = pair.Open();
  pair.b().refuse = true;
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  pair.Settle();
  ASSERT_EQ(pair.a().replies.size(), 1u);
  EXPECT_TRUE(pair.a().replies[0].not_ready());
  EXPECT_EQ(pair.a().replies[0].message, 2u);
  EXPECT_EQ(pair.a().replies[0].attempt, 1);
  EXPECT_EQ(pair.a().replies[0].destination, Qpn{0x33});
}

TEST_F(ChannelSetTest, RefusalThatIsLost_IsBuiltAgain) {
  Channel* channel = pair.Open();
  pair.b().refuse = true;
  EXPECT_TRUE(pair.a().Send(*channel, 2, pair.now));
  bool lost = false;
  pair.Settle([&](const ChannelPacket& packet) {
    if (lost || packet.meta.source != pair.b().gid || !packet.Is(Operation::kChannelFrame))
      return false;
    return lost = true;
  });
  EXPECT_TRUE(pair.a().replies.empty());
  pair.Advance(Seconds(1));
  EXPECT_EQ(pair.a().replies.size(), 1u);
}

TEST_F(ChannelSetTest, WindowFull_TurnsGoAroundAmongThoseInLine) {
  channel::ChannelOptions narrow = ChannelPair::OptionsOf(1);
  narrow.window = 2;
  ChannelPair other(ChannelPair::OptionsOf(0), narrow);
  Channel* channel = other.Open();
  EXPECT_TRUE(other.a().Send(*channel, 1, other.now, 1));
  EXPECT_TRUE(other.a().Send(*channel, 2, other.now, 1));
  for (uint32_t qp : {3, 4, 5}) EXPECT_FALSE(other.a().Send(*channel, qp, other.now, qp));
  EXPECT_TRUE(other.a().turns.empty());
  other.Advance(Milliseconds(1));
  EXPECT_EQ(other.a().turns, (Numbers{3, 4, 5}));
}

TEST_F(ChannelSetTest, PortWithoutPackets_NothingIsForgotten) {
  Channel* channel = Begun();
  pair.a().port_budget = 0;
  pair.a().Turn(pair.now);
  EXPECT_TRUE(pair.a().sent.empty());
  EXPECT_TRUE(pair.a().set.busy());
  pair.a().port_budget = 1000;
  pair.Settle();
  EXPECT_EQ(channel->state(), ChannelState::kOpen);
}

TEST_F(ChannelSetTest, LateTimerOfAChannelThatIsGone_Ignored) {
  EXPECT_FALSE(pair.a().set.OnTimer(0, pair.now));
  Channel* channel = pair.Open();
  channel->Release();
  pair.a().held.clear();
  pair.Advance(Seconds(62));
  EXPECT_FALSE(pair.a().set.OnTimer(0, pair.now));
}

}  // namespace
}  // namespace rocegw::testing::channel_set
