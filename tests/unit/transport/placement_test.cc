// SPDX-License-Identifier: Apache-2.0
// FLUSH and ATOMIC WRITE at both ends of a queue pair, as plain RoCEv2 and on a channel.
#include <gtest/gtest.h>

#include "tests/support/qp/frame_peer.h"

namespace rocegw::testing::placement {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::FrameKind;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint32_t kPeerPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kTarget = 0x2000;
constexpr uint64_t kRemote = 0x7000;
constexpr uint8_t kSuccess = 0;
constexpr uint8_t kLocalLength = 1;
constexpr uint8_t kLocalQpOperation = 2;
constexpr uint8_t kBadResponse = 7;
constexpr uint8_t kFlushed = 8;        // IBV_WC_FLUSH
constexpr uint8_t kAtomicWritten = 9;  // IBV_WC_ATOMIC_WRITE
constexpr uint32_t kGlobal = wire::kFlushGlobal;
constexpr uint32_t kWhole = wire::kFlushGlobal | wire::kFlushRegion;

ScriptedPeer::Options Able(bool able = true) {
  ScriptedPeer::Options options;
  options.host.placement = able;
  return options;
}

uint64_t WordAt(QpHost& host, uint64_t offset) {
  uint64_t word;
  std::memcpy(&word, &host.memory()[offset], sizeof word);
  return word;
}

std::vector<uint8_t> BytesOf(uint64_t word) {
  std::vector<uint8_t> bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

wire::Headers AtomicWrite(const ScriptedPeer& peer, uint32_t psn, uint64_t offset) {
  return peer.Write(Opcode::kRcAtomicWrite, psn, offset, 8, true);
}

wire::Headers Flush(const ScriptedPeer& peer, uint32_t psn, uint32_t feth = kGlobal,
                    uint64_t offset = kTarget, uint32_t length = 64) {
  wire::Headers headers = peer.Write(Opcode::kRcFlush, psn, offset, length, true);
  headers.feth = feth;
  return headers;
}

void PostAtomicWrite(QpHost& host, uint32_t length = 8) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = 9;
  wqe.opcode = ROCEGW_WR_ATOMIC_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma = {kRemote, 0, 0, 0x55, 0};
  host.PostSend(wqe, {{kSource, length}});
}

void PostFlush(QpHost& host, uint64_t length = 4096, uint32_t feth = kGlobal) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = 10;
  wqe.opcode = ROCEGW_WR_FLUSH;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  wqe.u.rdma = {kRemote, length, feth, 0x55, 0};
  host.PostSend(wqe, {});
}

void ExpectEmptyResponse(const SentPacket& answer, uint32_t psn) {
  EXPECT_EQ(answer.opcode(), Opcode::kRcReadResponseOnly);
  EXPECT_EQ(answer.psn(), psn);
  EXPECT_EQ(answer.syndrome(), wire::kSyndromeAck);
  EXPECT_TRUE(answer.payload.empty());
}

TEST(PlacementResponder, AtomicWrite_StoresAndAnswersWithoutData) {
  ScriptedPeer peer(Able());
  EXPECT_EQ(peer.Deliver(AtomicWrite(peer, kPeerPsn, kTarget), BytesOf(0x1122334455667788)),
            DropReason::kNone);
  EXPECT_TRUE(peer.OutWithoutMemory().empty()) << "not before it is stored";
  ExpectEmptyResponse(peer.OutOne(), kPeerPsn);
  EXPECT_EQ(WordAt(peer.host(), kTarget), 0x1122334455667788u);
}

TEST(PlacementResponder, RepeatedAtomicWrite_AnsweredAndNotExecuted) {
  ScriptedPeer peer(Able());
  const wire::Headers request = AtomicWrite(peer, kPeerPsn, kTarget);
  peer.Deliver(request, BytesOf(1));
  peer.Out();
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPeerPsn + 1, kTarget, 8, true), BytesOf(2));
  peer.Out();
  EXPECT_EQ(peer.Deliver(request, BytesOf(1)), DropReason::k_duplicate_request);
  ExpectEmptyResponse(peer.OutOne(), kPeerPsn);
  EXPECT_EQ(WordAt(peer.host(), kTarget), 2u);
}

TEST(PlacementResponder, RepetitionOfSomethingElse_Dropped) {
  ScriptedPeer peer(Able());
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPeerPsn, kTarget, 8, true), BytesOf(2));
  peer.Out();
  EXPECT_EQ(peer.Deliver(AtomicWrite(peer, kPeerPsn, kTarget), BytesOf(1)),
            DropReason::k_duplicate_invalid);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(WordAt(peer.host(), kTarget), 2u);
}

// Requests that must be refused, with the expected syndrome.
struct Refused {
  const char* name;
  void (*prepare)(ScriptedPeer&);
  wire::Headers (*request)(const ScriptedPeer&);
  uint8_t syndrome;
};
void Nothing(ScriptedPeer&) {}
template <uint32_t kRight>
void WithoutRight(ScriptedPeer& peer) {
  verbs::QpAttributes attributes = peer.attributes();
  attributes.access &= ~kRight;
  ASSERT_EQ(peer.host().Modify(verbs::kAttrAccessFlags, attributes), 0);
}
template <uint64_t kOffset>
wire::Headers WriteAt(const ScriptedPeer& peer) {
  return AtomicWrite(peer, kPeerPsn, kOffset);
}
template <uint32_t kFeth>
wire::Headers FlushAs(const ScriptedPeer& peer) {
  return Flush(peer, kPeerPsn, kFeth);
}
constexpr uint64_t kMemory = 1 << 20;
const Refused kRefused[] = {
    {"AtomicWriteMisaligned", Nothing, WriteAt<kTarget + 4>, 0x61},
    {"AtomicWriteBeyondTheRegion", Nothing, WriteAt<kMemory>, 0x62},
    {"AtomicWriteWithoutRight", WithoutRight<verbs::kAccessRemoteWrite>, WriteAt<kTarget>, 0x61},
    {"AtomicWriteSaysNine", Nothing,
     [](const ScriptedPeer& peer) {
       wire::Headers headers = AtomicWrite(peer, kPeerPsn, kTarget);
       headers.reth.length = 9;
       return headers;
     },
     0x61},
    {"FlushOfNoType", Nothing, FlushAs<0>, 0x61},
    {"FlushOfUnknownType", Nothing, FlushAs<4 | kGlobal>, 0x61},
    {"FlushOfUnknownLevel", Nothing, FlushAs<0x20 | kGlobal>, 0x61},
    {"FlushPersistent", Nothing, FlushAs<wire::kFlushPersistent>, 0x61},
    {"FlushWithoutRight", WithoutRight<verbs::kAccessFlushGlobal>, FlushAs<kGlobal>, 0x61},
    {"FlushBeyondTheRegion", Nothing,
     [](const ScriptedPeer& peer) { return Flush(peer, kPeerPsn, kGlobal, kMemory - 8, 9); }, 0x62},
    {"FlushOfAnUnknownRegion", Nothing,
     [](const ScriptedPeer& peer) {
       wire::Headers headers = Flush(peer, kPeerPsn, kWhole);
       headers.reth.rkey = 0x7777;
       return headers;
     },
     0x62},
};

class PlacementRefused : public ::testing::TestWithParam<Refused> {};
INSTANTIATE_TEST_SUITE_P(All, PlacementRefused, ::testing::ValuesIn(kRefused),
                         [](const auto& parameter) { return parameter.param.name; });

TEST_P(PlacementRefused, AnsweredByNak_NothingChanged) {
  ScriptedPeer peer(Able());
  GetParam().prepare(peer);
  const wire::Headers request = GetParam().request(peer);
  const bool writes = request.bth.opcode == Opcode::kRcAtomicWrite;
  peer.Deliver(request, writes ? BytesOf(7) : std::vector<uint8_t>());
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.opcode(), Opcode::kRcAck);
  EXPECT_EQ(nak.syndrome(), GetParam().syndrome);
  EXPECT_EQ(nak.psn(), kPeerPsn);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  for (const uint8_t byte : peer.host().memory()) ASSERT_EQ(byte, 0);
}

TEST(PlacementResponder, QueuePairWithoutTheExtensions_InvalidRequest) {
  for (const bool flush : {false, true}) {
    ScriptedPeer peer(Able(false));
    if (flush) {
      peer.Deliver(Flush(peer, kPeerPsn));
    } else {
      peer.Deliver(AtomicWrite(peer, kPeerPsn, kTarget), BytesOf(7));
    }
    EXPECT_EQ(peer.OutOne().syndrome(), 0x61);
    EXPECT_EQ(WordAt(peer.host(), kTarget), 0u);
  }
}

TEST(PlacementResponder, Flush_AnsweredBehindWhatWasWrittenBefore) {
  ScriptedPeer peer(Able());
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPeerPsn, kTarget, 64), ScriptedPeer::Bytes(64));
  EXPECT_EQ(peer.Deliver(Flush(peer, kPeerPsn + 1)), DropReason::kNone);
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  ExpectEmptyResponse(peer.OutOne(), kPeerPsn + 1);
  EXPECT_EQ(peer.host().memory()[kTarget + 63], ScriptedPeer::Bytes(64)[63]);
}

TEST(PlacementResponder, FlushOfARegion_NeedsNoRange) {
  ScriptedPeer peer(Able());
  EXPECT_EQ(peer.Deliver(Flush(peer, kPeerPsn, kWhole, kMemory, 0)), DropReason::kNone);
  ExpectEmptyResponse(peer.OutOne(), kPeerPsn);
}

TEST(PlacementResponder, RepeatedFlush_AnsweredAgainInItsPlace) {
  ScriptedPeer peer(Able());
  peer.Deliver(Flush(peer, kPeerPsn));
  peer.Deliver(peer.Read(kPeerPsn + 1, kTarget, 8));
  EXPECT_EQ(peer.Out().size(), 2u);
  EXPECT_EQ(peer.Deliver(Flush(peer, kPeerPsn)), DropReason::k_duplicate_request);
  peer.Deliver(peer.Read(kPeerPsn + 1, kTarget, 8));
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  ExpectEmptyResponse(out[0], kPeerPsn);
  EXPECT_EQ(out[1].psn(), kPeerPsn + 1);
}

TEST(PlacementResponder, FlushesAreNotCountedAsReads_ButBounded) {
  ScriptedPeer peer(Able());
  peer.host().port_budget = 0;
  const uint32_t most = 128;
  for (uint32_t i = 0; i < most; ++i)
    ASSERT_EQ(peer.Deliver(Flush(peer, kPeerPsn + i)), DropReason::kNone) << i;
  EXPECT_EQ(peer.Deliver(Flush(peer, kPeerPsn + most)), DropReason::k_invalid_request);
}

TEST(PlacementResponder, AtomicWriteThatFaults_RemoteAccess) {
  ScriptedPeer peer(Able());
  peer.host().Poison(kTarget, 8);
  peer.Deliver(AtomicWrite(peer, kPeerPsn, kTarget), BytesOf(7));
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPeerPsn);
}

TEST(PlacementRequester, AtomicWrite_OnePacketThatWaitsForItsAnswer) {
  ScriptedPeer peer(Able());
  std::memcpy(&peer.host().memory()[kSource], BytesOf(0xABCD).data(), 8);
  PostAtomicWrite(peer.host());
  const SentPacket out = peer.OutOne();
  EXPECT_EQ(out.opcode(), Opcode::kRcAtomicWrite);
  EXPECT_TRUE(out.headers.bth.ack_request);
  EXPECT_EQ(out.headers.reth.address, kRemote);
  EXPECT_EQ(out.headers.reth.length, 8u);
  EXPECT_EQ(out.payload, BytesOf(0xABCD));
  EXPECT_EQ(peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn)), DropReason::kNone);
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, kAtomicWritten);
}

TEST(PlacementRequester, Flush_SaysWhatItIsAbout) {
  ScriptedPeer peer(Able());
  PostFlush(peer.host(), 4096, kWhole);
  const SentPacket out = peer.OutOne();
  EXPECT_EQ(out.opcode(), Opcode::kRcFlush);
  EXPECT_EQ(out.headers.feth, kWhole);
  EXPECT_EQ(out.headers.reth.address, kRemote);
  EXPECT_EQ(out.headers.reth.length, 4096u);
  EXPECT_TRUE(out.payload.empty());
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn));
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, kFlushed);
}

TEST(PlacementRequester, AckInsteadOfTheAnswer_AskedAgain) {
  ScriptedPeer peer(Able());
  PostFlush(peer.host());
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kRcFlush);
}

TEST(PlacementRequester, AnsweredWithData_BadResponse) {
  ScriptedPeer peer(Able());
  PostAtomicWrite(peer.host());
  peer.Out();
  EXPECT_EQ(
      peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8)),
      DropReason::k_malformed_response);
  EXPECT_EQ(peer.PollOne().status, kBadResponse);
}

TEST(PlacementRequester, CountAsReads_AndFollowEachOther) {
  ScriptedPeer::Options options = Able();
  options.limits.max_rd_atomic = 2;
  ScriptedPeer peer(options);
  PostAtomicWrite(peer.host());
  PostFlush(peer.host());
  PostAtomicWrite(peer.host());
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn));
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 2);
}

TEST(PlacementRequester, WhatCannotBe_FailsHere) {
  const auto status_of = [](bool able, void (*post)(QpHost&)) {
    ScriptedPeer peer(Able(able));
    post(peer.host());
    EXPECT_TRUE(peer.Out().empty());
    return peer.PollOne().status;
  };
  EXPECT_EQ(status_of(false, [](QpHost& host) { PostAtomicWrite(host); }), kLocalQpOperation);
  EXPECT_EQ(status_of(false, [](QpHost& host) { PostFlush(host); }), kLocalQpOperation);
  EXPECT_EQ(status_of(true, [](QpHost& host) { PostAtomicWrite(host, 4); }), kLocalLength);
  EXPECT_EQ(status_of(true, [](QpHost& host) { PostFlush(host, uint64_t{1} << 32); }),
            kLocalLength);
}

class PlacementOnChannel : public ::testing::Test {
 protected:
  PlacementOnChannel() { peer.host().context().peer_places = true; }
  wire::ChannelFrame AtomicWriteFrame(uint32_t message, uint64_t offset = kTarget) {
    wire::ChannelFrame frame = peer.Write(message, offset, 8);
    frame.kind = FrameKind::kAtomicWrite;
    return frame;
  }
  wire::ChannelFrame FlushFrame(uint32_t message) {
    wire::ChannelFrame frame = peer.Write(message, kTarget, 64);
    frame.kind = FrameKind::kFlush;
    frame.feth = kGlobal;
    return frame;
  }
  void ExpectAcked(uint32_t message) {
    const SentFrame reply = peer.OutOne();
    EXPECT_EQ(reply.frame.kind, FrameKind::kReply);
    EXPECT_EQ(reply.frame.syndrome, wire::kSyndromeAck);
    EXPECT_EQ(reply.frame.message, message);
  }
  FramePeer peer{Able()};
};

TEST_F(PlacementOnChannel, Requests_LeaveAsFrames_DoneByReply) {
  std::memcpy(&peer.host().memory()[kSource], BytesOf(0xABCD).data(), 8);
  PostAtomicWrite(peer.host());
  PostFlush(peer.host(), 128, kWhole);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].frame.kind, FrameKind::kAtomicWrite);
  EXPECT_EQ(out[0].frame.length, 8u);
  EXPECT_EQ(out[0].payload, BytesOf(0xABCD));
  EXPECT_EQ(out[1].frame.kind, FrameKind::kFlush);
  EXPECT_EQ(out[1].frame.feth, kWhole);
  EXPECT_EQ(out[1].frame.length, 128u);
  EXPECT_EQ(peer.Reply(1, wire::kSyndromeAck), DropReason::kNone);
  const auto done = peer.base().Poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].opcode, kAtomicWritten);
  EXPECT_EQ(done[1].opcode, kFlushed);
}

TEST_F(PlacementOnChannel, PeerThatHasNone_FailsHere) {
  peer.host().context().peer_places = false;
  PostFlush(peer.host());
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.base().PollOne().status, kLocalQpOperation);
}

TEST_F(PlacementOnChannel, AtomicWrite_RepliedWhenStored) {
  peer.Deliver(AtomicWriteFrame(0), BytesOf(5));
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  ExpectAcked(0);
  EXPECT_EQ(WordAt(peer.host(), kTarget), 5u);
}

TEST_F(PlacementOnChannel, Flush_RepliedBehindTheWriteBefore) {
  peer.Deliver(peer.Write(0, kTarget, 64), ScriptedPeer::Bytes(64));
  peer.Deliver(FlushFrame(1));
  EXPECT_TRUE(peer.OutWithoutMemory().empty());
  ExpectAcked(1);
  EXPECT_EQ(peer.host().memory()[kTarget + 63], ScriptedPeer::Bytes(64)[63]);
}

TEST_F(PlacementOnChannel, FlushAheadOfWhatItSpeaksOf_Waits) {
  peer.Deliver(FlushFrame(1));
  EXPECT_TRUE(peer.Out().empty());
  peer.Deliver(peer.Write(0, kTarget, 64), ScriptedPeer::Bytes(64));
  ExpectAcked(1);
}

TEST_F(PlacementOnChannel, LateAtomicWrite_LeavesWhatLaterWritesHavePut) {
  // A later WRITE over the second half of the word, and more, is placed first.
  const auto later = ScriptedPeer::Bytes(32, 100);
  peer.Deliver(peer.Write(1, kTarget + 4, 32), later);
  peer.Out();
  peer.Deliver(AtomicWriteFrame(0), BytesOf(0x0807060504030201));
  peer.Out();
  const std::vector<uint8_t>& memory = peer.host().memory();
  EXPECT_EQ(memory[kTarget], 1);
  EXPECT_EQ(memory[kTarget + 3], 4);
  EXPECT_EQ(memory[kTarget + 4], later[0]);
  EXPECT_EQ(memory[kTarget + 35], later[31]);
}

TEST_F(PlacementOnChannel, Misaligned_InvalidRequest) {
  peer.Deliver(AtomicWriteFrame(0, kTarget + 1), BytesOf(5));
  EXPECT_EQ(peer.OutOne().frame.syndrome, 0x61);
  EXPECT_EQ(peer.state(), QpState::kError);
  EXPECT_EQ(WordAt(peer.host(), kTarget), 0u);
}

TEST(PlacementOrder, Flush_AfterAllWhereThePeerRelaxes) {
  ScriptedPeer::Options options = Able();
  options.host.service_mode = verbs::ServiceMode::kUnordered;
  FramePeer peer(options);
  peer.host().context().peer_places = peer.host().context().peer_relaxes = true;
  PostFlush(peer.host());
  EXPECT_EQ(wire::OrderOf(peer.OutOne().frame.flags), wire::MessageOrder::kAfterAll);
}

}  // namespace
}  // namespace rocegw::testing::placement
