// SPDX-License-Identifier: Apache-2.0
// Replies of an RC responder, their time and order: READ responses, acknowledgements, repeated
// requests.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::responder_reply {
namespace {

using metrics::DropReason;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kTarget = 0x1000;

std::vector<uint8_t> Fill(ScriptedPeer& peer, uint64_t offset, uint32_t length) {
  const auto data = ScriptedPeer::Bytes(length, 17);
  std::memcpy(&peer.host().memory()[offset], data.data(), length);
  return data;
}

uint64_t Load(ScriptedPeer& peer, uint64_t offset) {
  uint64_t value;
  std::memcpy(&value, &peer.host().memory()[offset], 8);
  return value;
}

// Checks opcodes and PSNs of a READ response and returns its bytes.
std::vector<uint8_t> JoinResponse(const std::vector<SentPacket>& out, uint32_t first_psn) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool first = i == 0;
    const bool last = i + 1 == out.size();
    EXPECT_EQ(out[i].opcode(), first && last ? Opcode::kRcReadResponseOnly
                               : first       ? Opcode::kRcReadResponseFirst
                               : last        ? Opcode::kRcReadResponseLast
                                             : Opcode::kRcReadResponseMiddle);
    EXPECT_EQ(out[i].psn(), (first_psn + i) & 0xFFFFFF);
    if (first || last) {
      EXPECT_EQ(out[i].syndrome(), 0x1F);
    }
    bytes.insert(bytes.end(), out[i].payload.begin(), out[i].payload.end());
  }
  return bytes;
}

TEST(ResponderRead, EveryLengthAroundTheMtu_AnsweredInPackets) {
  for (uint32_t length : {1u, 255u, 256u, 257u, 511u, 512u, 513u, 5000u}) {
    SCOPED_TRACE(length);
    ScriptedPeer peer;
    const auto data = Fill(peer, kTarget, length);
    peer.Deliver(peer.Read(kPsn, kTarget, length));
    const auto out = peer.Out();
    EXPECT_EQ(out.size(), (length + 255) / 256);
    EXPECT_EQ(JoinResponse(out, kPsn), data);
    for (const SentPacket& packet : out) {
      if (packet.opcode() != Opcode::kRcReadResponseMiddle) {
        EXPECT_EQ(packet.headers.aeth.msn, 1u);
      }
    }
    EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn + (length + 255) / 256);
    EXPECT_EQ(peer.host().counters().read_response_tx_packets.Read(), out.size());
  }
}

TEST(ResponderRead, AcrossThePsnWrap) {
  ScriptedPeer::Options options;
  options.peer_psn = 0xFFFFFE;
  ScriptedPeer peer(options);
  const auto data = Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(0xFFFFFE, kTarget, 1024));
  EXPECT_EQ(JoinResponse(peer.Out(), 0xFFFFFE), data);
  EXPECT_EQ(peer.host().qp().psns().expected.value, 2u);
}

// With a window of N bytes, at most N bytes leave in a round of 50 us, and all leave in the end.
TEST(ResponderRead, GateOfFourPackets_HoldsTheRestBackAndLosesNothing) {
  for (const verbs::QpState state : {verbs::QpState::kRtr, verbs::QpState::kRts}) {
    SCOPED_TRACE(static_cast<int>(state));
    ScriptedPeer::Options options;
    options.host.cc.window_bytes = 1024;
    options.state = state;
    ScriptedPeer peer(options);
    const auto data = Fill(peer, kTarget, 5000);
    peer.Deliver(peer.Read(kPsn, kTarget, 5000));
    auto out = peer.Out();
    EXPECT_EQ(out.size(), 4u);
    EXPECT_EQ(peer.host().qp().deadline(), peer.now() + Microseconds(50));
    EXPECT_TRUE(peer.Out().empty()) << "as often as it is asked";
    EXPECT_TRUE(peer.Advance(Microseconds(49)).empty());
    while (out.size() < 20) {
      const auto more = peer.Advance(Microseconds(50));
      ASSERT_EQ(more.size(), 4u);
      out.insert(out.end(), more.begin(), more.end());
    }
    EXPECT_EQ(JoinResponse(out, kPsn), data);
    EXPECT_EQ(peer.host().qp().deadline(), kNever);
  }
}

TEST(ResponderRead, GateClosed_LaterAnswersWaitTheirTurn) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 512;
  ScriptedPeer peer(options);
  Fill(peer, kTarget, 1024);
  peer.PostReceive(0x8000, 64);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 4, true), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.Out().size(), 2u);
  // The queue pair's own requests leave meanwhile.
  peer.PostSend(0x9000, 4);
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kRcSendOnly);
  const auto out = peer.Advance(Microseconds(50));
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[2].opcode(), Opcode::kRcAck);
  EXPECT_EQ(out[2].psn(), kPsn + 4);
}

TEST(ResponderRead, GateClosed_ResetForgetsTheWait) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 256;
  ScriptedPeer peer(options);
  Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  EXPECT_EQ(peer.Out().size(), 1u);
  ASSERT_EQ(peer.host().ToState(verbs::QpState::kReset), 0);
  EXPECT_EQ(peer.host().qp().deadline(), kNever);
}

TEST(ResponderRead, AckOfALaterSend_NeverBeforeTheData) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 2000);
  peer.PostReceive(0x8000, 64);
  peer.Deliver(peer.Read(kPsn, kTarget, 2000));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 8, true), ScriptedPeer::Bytes(8));
  peer.host().Settle();
  // The port takes three packets at a time.
  std::vector<SentPacket> out;
  for (int turn = 0; turn < 4; ++turn) {
    peer.host().port_budget = 3;
    for (SentPacket& packet : peer.Out()) out.push_back(std::move(packet));
  }
  ASSERT_EQ(out.size(), 9u);
  EXPECT_EQ(out[8].opcode(), Opcode::kRcAck);
  EXPECT_EQ(out[8].psn(), kPsn + 8);
  EXPECT_EQ(out[8].headers.aeth.msn, 2u);
  out.pop_back();
  JoinResponse(out, kPsn);
}

TEST(ResponderRead, AnswersAtomicAndReadInOrder) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 600);
  peer.Deliver(peer.Read(kPsn, kTarget, 600));
  peer.Deliver(peer.FetchAdd(kPsn + 3, kTarget, 1));
  peer.Deliver(peer.Read(kPsn + 4, kTarget, 8));
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(out[i].psn(), kPsn + i);
  EXPECT_EQ(out[3].opcode(), Opcode::kRcAtomicAck);
  EXPECT_EQ(out[4].headers.aeth.msn, 3u);
}

TEST(ResponderRead, RegionGoneWhileItIsRead_Nak62AfterWhatWasSent) {
  ScriptedPeer peer;
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  peer.host().port_budget = 2;
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  peer.host().port_budget = 100;
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPsn + 2);
  EXPECT_EQ(peer.host().context().state(), verbs::QpState::kError);
}

// A refused request ends the queue pair, but earlier valid requests are answered first.
TEST(ResponderRead, LaterRequestRefused_AnsweredWholeBeforeTheNak) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 512;
  ScriptedPeer peer(options);
  const auto data = Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  wire::Headers refused = peer.Write(Opcode::kRcWriteOnly, kPsn + 4, kTarget, 4, true);
  refused.reth.rkey ^= 1;
  peer.Deliver(refused, ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.host().context().state(), verbs::QpState::kError);
  auto out = peer.Out();
  for (int round = 0; round < 3; ++round) {
    for (SentPacket& packet : peer.Advance(Microseconds(50))) out.push_back(std::move(packet));
  }
  ASSERT_EQ(out.size(), 5u);
  EXPECT_EQ(out.back().syndrome(), 0x62);
  EXPECT_EQ(out.back().psn(), kPsn + 4);
  out.pop_back();
  EXPECT_EQ(JoinResponse(out, kPsn), data);
}

TEST(ResponderRead, LaterRequestRefusedAndRegionGone_NakAlone) {
  ScriptedPeer peer;
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  wire::Headers refused = peer.Write(Opcode::kRcWriteOnly, kPsn + 4, kTarget, 4, true);
  refused.reth.rkey ^= 1;
  peer.Deliver(refused, ScriptedPeer::Bytes(4));
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  EXPECT_EQ(peer.OutOne().syndrome(), 0x62);
  EXPECT_EQ(peer.host().counters().nak_error_tx_packets.Read(), 1u);
}

TEST(ResponderRead, QueuePairFailedByItsProgram_NothingMore) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 512;
  ScriptedPeer peer(options);
  Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  EXPECT_EQ(peer.Out().size(), 2u);
  ASSERT_EQ(peer.host().ToState(verbs::QpState::kError), 0);
  EXPECT_TRUE(peer.Advance(Microseconds(100)).empty());
}

TEST(ResponderDuplicateRead, Whole_AnsweredAgainFromMemory) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 700);
  peer.Deliver(peer.Read(kPsn, kTarget, 700));
  peer.Out();
  const auto changed = ScriptedPeer::Bytes(700, 99);
  std::memcpy(&peer.host().memory()[kTarget], changed.data(), changed.size());
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, kTarget, 700)), DropReason::k_duplicate_request);
  const auto out = peer.Out();
  EXPECT_EQ(JoinResponse(out, kPsn), changed);
  EXPECT_EQ(out.front().headers.aeth.msn, 1u) << "the MSN of its execution";
  EXPECT_EQ(peer.host().counters().read_replay_events.Read(), 1u);
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn + 3);
}

TEST(ResponderDuplicateRead, Tail_AnsweredFromThere) {
  ScriptedPeer peer;
  const auto data = Fill(peer, kTarget, 1000);
  peer.Deliver(peer.Read(kPsn, kTarget, 1000));
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 2, kTarget + 512, 488)), DropReason::k_duplicate_request);
  EXPECT_EQ(JoinResponse(peer.Out(), kPsn + 2),
            std::vector<uint8_t>(data.begin() + 512, data.end()));
}

TEST(ResponderDuplicateRead, NotInsideOfWhatWasAsked_Silent) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 1000);
  peer.Deliver(peer.Read(kPsn, kTarget, 1000));
  peer.Out();
  const auto refused = [&](wire::Headers headers) {
    EXPECT_EQ(peer.Deliver(headers), DropReason::k_duplicate_invalid);
    EXPECT_TRUE(peer.Out().empty());
  };
  refused(peer.Read(kPsn, kTarget, 1001));
  refused(peer.Read(kPsn, kTarget + 4, 900));
  refused(peer.Read(kPsn + 1, kTarget, 256));
  refused(peer.Read(kPsn + 2, kTarget + 512, 489));
  refused(peer.Read(kPsn - 1, kTarget, 10));
  wire::Headers other_key = peer.Read(kPsn, kTarget, 1000);
  other_key.reth.rkey ^= 1;
  refused(other_key);
  EXPECT_EQ(peer.host().context().state(), verbs::QpState::kRts);
}

TEST(ResponderDuplicateRead, WhileItIsAnswered_StartsOverOnce) {
  ScriptedPeer peer;
  const auto data = Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  peer.host().port_budget = 3;
  EXPECT_EQ(peer.Out().size(), 3u);
  peer.host().port_budget = 100;
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  EXPECT_EQ(JoinResponse(peer.Out(), kPsn), data);
  // Repetition from the middle: packets before it that were not sent yet still leave.
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  peer.host().port_budget = 1;
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.Deliver(peer.Read(kPsn + 2, kTarget + 512, 512));
  peer.host().port_budget = 100;
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].psn(), kPsn + 1);
  EXPECT_EQ(out[1].psn(), kPsn + 2);
  EXPECT_EQ(out[1].opcode(), Opcode::kRcReadResponseFirst);
  EXPECT_EQ(out[2].psn(), kPsn + 3);
}

TEST(ResponderDuplicateRead, FromWhereTheAnswerStands_NothingTwice) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Read(kPsn, kTarget, 1024));
  peer.host().port_budget = 2;
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.host().port_budget = 100;
  peer.Deliver(peer.Read(kPsn + 2, kTarget + 512, 512));
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].psn(), kPsn + 2);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcReadResponseFirst);
  EXPECT_EQ(out[1].psn(), kPsn + 3);
}

// A delayed copy of a request before the READ arrives while its response is slow.
TEST(ResponderDuplicateRead, BehindACopyOfAnEarlierWrite_EndsTheSlowAnswer) {
  ScriptedPeer peer;
  Fill(peer, kTarget, 1024);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, 0, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Read(kPsn + 1, kTarget, 1024));
  peer.host().port_budget = 1;
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
  peer.host().port_budget = 0;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, 0, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Read(kPsn + 3, kTarget + 512, 512));
  peer.host().port_budget = 100;
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].psn(), kPsn + 2);
  EXPECT_EQ(out[1].psn(), kPsn + 3);
  EXPECT_EQ(out[1].opcode(), Opcode::kRcReadResponseFirst);
  EXPECT_EQ(out[2].psn(), kPsn + 4);
}

TEST(ResponderDuplicateRead, BeyondTheRememberedDepth_Silent) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 2;
  ScriptedPeer peer(options);
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Deliver(peer.Read(kPsn + i, kTarget, 8));
    peer.Out();
  }
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, kTarget, 8)), DropReason::k_duplicate_invalid);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 1, kTarget, 8)), DropReason::k_duplicate_request);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 2, kTarget, 8)), DropReason::k_duplicate_request);
}

TEST(ResponderDuplicateRead, DepthRaisedWhileDrained_KeepsWhatIsRemembered) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 2;
  ScriptedPeer peer(options);
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Deliver(peer.Read(kPsn + i, kTarget, 8));
    peer.Out();
  }
  ASSERT_EQ(peer.host().ToState(verbs::QpState::kSqd), 0);
  verbs::QpAttributes more = peer.attributes();
  more.max_dest_rd_atomic = 4;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrMaxDestRdAtomic, more), 0);
  for (uint32_t i = 3; i < 5; ++i) {
    peer.Deliver(peer.Read(kPsn + i, kTarget, 8));
    peer.Out();
  }
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, kTarget, 8)), DropReason::k_duplicate_invalid);
  for (uint32_t i = 1; i < 5; ++i) {
    EXPECT_EQ(peer.Deliver(peer.Read(kPsn + i, kTarget, 8)), DropReason::k_duplicate_request) << i;
    peer.Out();
  }
  for (uint32_t i = 5; i < 9; ++i) {
    EXPECT_EQ(peer.Deliver(peer.Read(kPsn + i, kTarget, 8)), DropReason::kNone) << i;
  }
}

TEST(ResponderDuplicateAtomic, StoredResultAgain_NeverExecuted) {
  for (bool swap : {false, true}) {
    ScriptedPeer peer;
    const uint64_t before = 5;
    std::memcpy(&peer.host().memory()[kTarget], &before, 8);
    const wire::Headers request =
        swap ? peer.CompareSwap(kPsn, kTarget, 5, 6) : peer.FetchAdd(kPsn, kTarget, 1);
    peer.Deliver(request);
    EXPECT_EQ(peer.OutOne().headers.atomic_ack, 5u);
    EXPECT_EQ(Load(peer, kTarget), 6u);
    const uint64_t later = 1000;
    std::memcpy(&peer.host().memory()[kTarget], &later, 8);
    EXPECT_EQ(peer.Deliver(request), DropReason::k_duplicate_request);
    EXPECT_TRUE(peer.host().queued().empty());
    const SentPacket again = peer.OutOne();
    EXPECT_EQ(again.opcode(), Opcode::kRcAtomicAck);
    EXPECT_EQ(again.headers.atomic_ack, 5u);
    EXPECT_EQ(again.psn(), kPsn);
    EXPECT_EQ(again.headers.aeth.msn, 1u);
    EXPECT_EQ(Load(peer, kTarget), 1000u);
    EXPECT_EQ(peer.host().counters().atomic_replay_events.Read(), 1u);
  }
}

TEST(ResponderDuplicateAtomic, BeforeItWasExecuted_OneExecutionOneAnswer) {
  ScriptedPeer peer;
  peer.Deliver(peer.FetchAdd(kPsn, kTarget, 3));
  peer.Deliver(peer.FetchAdd(kPsn, kTarget, 3));
  EXPECT_EQ(peer.host().queued().size(), 1u);
  EXPECT_EQ(peer.OutOne().headers.atomic_ack, 0u);
  EXPECT_EQ(Load(peer, kTarget), 3u);
}

// The first response was in flight when the request was repeated, and allowed the requester a new
// request.
TEST(ResponderDuplicateAtomic, Repeated_LeavesRoomForANewOne) {
  for (const bool atomic : {true, false}) {
    SCOPED_TRACE(atomic);
    ScriptedPeer::Options options;
    options.limits.max_dest_rd_atomic = 1;
    ScriptedPeer peer(options);
    const auto request = [&](uint32_t psn) {
      return atomic ? peer.FetchAdd(psn, kTarget, 1) : peer.Read(psn, kTarget, 8);
    };
    peer.Deliver(request(kPsn));
    EXPECT_EQ(peer.Out().size(), 1u);
    EXPECT_EQ(peer.Deliver(request(kPsn)), DropReason::k_duplicate_request);
    EXPECT_EQ(peer.Deliver(request(kPsn + 1)), DropReason::kNone);
    const auto out = peer.Out();
    ASSERT_FALSE(out.empty());
    EXPECT_EQ(out.back().psn(), kPsn + 1);
    EXPECT_EQ(out.back().syndrome(), 0x1F);
    EXPECT_EQ(peer.host().context().state(), verbs::QpState::kRts);
  }
}

TEST(ResponderDuplicateAtomic, NotRemembered_Silent) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 8), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Read(kPsn + 1, kTarget, 8));
  peer.Out();
  const uint64_t before = Load(peer, kTarget);
  for (uint32_t psn : {kPsn, kPsn + 1, kPsn - 5}) {
    EXPECT_EQ(peer.Deliver(peer.FetchAdd(psn, kTarget, 1)), DropReason::k_duplicate_invalid);
    EXPECT_TRUE(peer.Out().empty());
  }
  peer.Deliver(peer.FetchAdd(kPsn + 2, kTarget + 64, 1));
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 2, kTarget, 8)), DropReason::k_duplicate_invalid);
  EXPECT_EQ(Load(peer, kTarget), before);
}

TEST(ResponderAck, Burst_OneAcknowledgementOfTheLast) {
  ScriptedPeer peer;
  for (uint32_t i = 0; i < 20; ++i) {
    peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + i, kTarget, 4, true),
                 ScriptedPeer::Bytes(4));
  }
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.psn(), kPsn + 19);
  EXPECT_EQ(ack.headers.aeth.msn, 20u);
  EXPECT_EQ(peer.host().counters().ack_tx_packets.Read(), 1u);
}

TEST(ResponderAck, InTheMiddleOfAMessage_AcknowledgesThePacketNotTheMessage) {
  ScriptedPeer peer;
  wire::Headers first = peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, 512, true);
  peer.Deliver(first, ScriptedPeer::Bytes(256));
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.psn(), kPsn);
  EXPECT_EQ(ack.headers.aeth.msn, 0u);
}

TEST(ResponderAck, BehindMemory_HeldAndThenForAll) {
  ScriptedPeer peer;
  peer.PostReceive(0x8000, 64);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4, true), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 1, true), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.host().queued().size(), 2u);
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  EXPECT_TRUE(peer.Poll().empty());

  // The first WRITE is placed and may be acknowledged, the SEND not yet.
  peer.host().RunMemory(1);
  auto out = peer.OutWithoutMemory();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].psn(), kPsn);
  EXPECT_TRUE(peer.Poll().empty());
  peer.host().RunMemory(1);
  EXPECT_EQ(peer.PollOne().status, 0);
  out = peer.OutWithoutMemory();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].psn(), kPsn + 1);
}

TEST(ResponderAck, MemoryAlwaysOneBehind_StillAcknowledges) {
  ScriptedPeer peer;
  size_t acks = 0;
  for (uint32_t i = 0; i < 50; ++i) {
    peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + i, kTarget, 4, true),
                 ScriptedPeer::Bytes(4));
    if (i != 0) peer.host().RunMemory(1);
    acks += peer.OutWithoutMemory().size();
  }
  EXPECT_GE(acks, 45u) << "an acknowledgement must not wait for what came after it";
}

TEST(ResponderAck, ZeroLengthBehindMemory_WaitsToo) {
  ScriptedPeer peer;
  peer.PostReceive(0x8000, 64);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 1, true), {});
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  EXPECT_TRUE(peer.Poll().empty()) << "its completion says that the WRITE is there";
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(ResponderAck, ReceiveBehindAnAtomic_WaitsForIt) {
  ScriptedPeer::Options options;
  options.host.rq_payload_stride = 64;
  ScriptedPeer peer(options);
  peer.PostReceive(0x8000, 64);
  peer.Deliver(peer.FetchAdd(kPsn, kTarget, 1));
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn + 1, true), ScriptedPeer::Bytes(8));
  EXPECT_TRUE(peer.Poll().empty());
  peer.host().RunMemory(1);
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(ResponderAck, ReadBehindAPendingWrite_SendsNothingYet) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 8), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Read(kPsn + 1, kTarget, 8));
  // The READ response would acknowledge the WRITE.
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  EXPECT_EQ(peer.host().queued().size(), 1u);
  const SentPacket response = peer.OutOne();
  EXPECT_EQ(response.opcode(), Opcode::kRcReadResponseOnly);
  EXPECT_EQ(response.payload, ScriptedPeer::Bytes(8));
}

TEST(ResponderAck, PortDry_NothingIsLost) {
  ScriptedPeer peer;
  peer.host().port_budget = 0;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 8, true), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.FetchAdd(kPsn + 1, kTarget, 1));
  peer.Deliver(peer.Read(kPsn + 2, kTarget, 8));
  EXPECT_TRUE(peer.Out().empty());
  peer.host().port_budget = 100;
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcAck);
  EXPECT_EQ(out[1].opcode(), Opcode::kRcAtomicAck);
  EXPECT_EQ(out[2].opcode(), Opcode::kRcReadResponseOnly);
}

TEST(ResponderAck, PumpBudget_LeavesTheRestForTheNextTurn) {
  ScriptedPeer peer;
  peer.Deliver(peer.Read(kPsn, kTarget, 256 * 10));
  transport::PumpBudget budget{4};
  EXPECT_EQ(peer.host().qp().Pump(peer.host(), peer.now(), budget), transport::PumpResult::kMore);
  peer.host().Settle();
  EXPECT_EQ(peer.host().sent.size(), 4u);
  budget = {100};
  EXPECT_EQ(peer.host().qp().Pump(peer.host(), peer.now(), budget), transport::PumpResult::kIdle);
  peer.host().Settle();
  EXPECT_EQ(peer.host().sent.size(), 10u);
}

TEST(ResponderAck, TicketsFarApart_StillAcknowledged) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 8, true), ScriptedPeer::Bytes(8));
  peer.OutOne();
  // A queue pair that has served READs for hours: tickets have advanced by more than half their
  // range.
  for (int i = 0; i < 3; ++i) {
    peer.host().context().tickets_issued += 0x40000000;
    peer.host().qp().OnMemoryDone(peer.host(), peer.host().context().tickets_issued);
  }
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 1, kTarget, 0, true), {});
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
  peer.host().Poison(kTarget, 8);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 8, true),
               ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.OutOne().syndrome(), 0x62) << "a fault is not taken for one of an earlier life";
}

// PSNs repeat after 2^24 packets; a request may be repeated for half of that (IBTA 9.7.1). Long
// READs whose responses never leave advance the responder that far.
class RememberedByAge : public ::testing::Test {
 protected:
  static constexpr uint32_t kHugeKey = 0x4711;
  static constexpr uint32_t kHalf = 1u << 23;

  RememberedByAge() {
    verbs::RegionConfig region;
    region.key = MemoryKey{kHugeKey};
    region.session = SessionId{1};
    region.pd = 1;
    region.access = verbs::kAccessRemoteRead;
    region.iova = region.address = uint64_t{1} << 40;
    region.length = uint64_t{1} << 32;
    EXPECT_TRUE(peer.host().regions().Link(region));
  }
  void Pass(uint32_t psns) {
    wire::Headers read = peer.Read(next & kPsnMask, 0, psns * 256);
    read.reth.address = uint64_t{1} << 40;
    read.reth.rkey = kHugeKey;
    EXPECT_EQ(peer.Deliver(read), DropReason::kNone);
    next += psns;
  }
  void PassByWrites(uint32_t count) {
    for (; count != 0; --count, ++next) {
      EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, next & kPsnMask, kTarget, 0)),
                DropReason::kNone);
    }
  }
  void Atomic() {
    EXPECT_EQ(peer.Deliver(peer.FetchAdd(next & kPsnMask, kTarget, 5)), DropReason::kNone);
    ++next;
    EXPECT_EQ(peer.OutOne().opcode(), Opcode::kRcAtomicAck);
  }

  ScriptedPeer peer;
  uint32_t next = kPsn;
};

TEST_F(RememberedByAge, AtomicOfTheRoundBefore_IsForgotten) {
  Atomic();
  Pass(kHalf - 10);
  Pass(kHalf - 10);
  PassByWrites(25);
  ASSERT_EQ(peer.host().qp().psns().expected.value, (kPsn + 6) & kPsnMask);
  // A later WRITE has used that PSN.
  EXPECT_EQ(peer.Deliver(peer.FetchAdd(kPsn, kTarget, 5)), DropReason::k_duplicate_invalid);
  EXPECT_EQ(Load(peer, kTarget), 5u);
}

TEST_F(RememberedByAge, ReadOfTheRoundBefore_IsForgotten) {
  peer.Deliver(peer.Read(next++, kTarget, 100));
  peer.OutOne();
  Pass(kHalf - 10);
  Pass(kHalf - 10);
  PassByWrites(25);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, kTarget, 100)), DropReason::k_duplicate_invalid);
}

TEST_F(RememberedByAge, AtomicOfHalfARoundBefore_IsAnsweredAgain) {
  Atomic();
  Pass(kHalf - 1);
  ASSERT_EQ(peer.host().qp().psns().expected.value, (kPsn + kHalf) & kPsnMask);
  EXPECT_EQ(peer.Deliver(peer.FetchAdd(kPsn, kTarget, 5)), DropReason::k_duplicate_request);
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kRcAtomicAck);
  EXPECT_EQ(Load(peer, kTarget), 5u);
}

}  // namespace
}  // namespace rocegw::testing::responder_reply
