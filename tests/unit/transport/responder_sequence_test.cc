// SPDX-License-Identifier: Apache-2.0
// Admission of request packets by an RC responder: PSN order, position in the message, length.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::responder_sequence {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kTarget = 0x1000;

TEST(ResponderOrder, PacketInOrder_AckRequested_ExecutedAndAcknowledged) {
  ScriptedPeer peer;
  const auto data = ScriptedPeer::Bytes(40);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 40, true), data),
            DropReason::kNone);
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.opcode(), Opcode::kRcAck);
  EXPECT_EQ(ack.psn(), kPsn);
  EXPECT_EQ(ack.syndrome(), 0x1F);
  EXPECT_EQ(ack.headers.aeth.msn, 1u);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kTarget], data.data(), 40), 0);
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn + 1);
}

TEST(ResponderOrder, PacketInOrder_AckNotRequested_Silent) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn + 1);
}

TEST(ResponderOrder, PacketsAhead_OneNakPerGap) {
  ScriptedPeer peer;
  for (uint32_t ahead : {2u, 3u, 1u, 700u}) {
    EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + ahead, kTarget, 4, true),
                           ScriptedPeer::Bytes(4)),
              DropReason::k_sequence_gap);
  }
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.opcode(), Opcode::kRcAck);
  EXPECT_EQ(nak.psn(), kPsn) << "a sequence NAK carries the expected PSN";
  EXPECT_EQ(nak.syndrome(), 0x60);
  EXPECT_EQ(nak.headers.aeth.msn, 0u);
  EXPECT_EQ(peer.host().counters().nak_sequence_tx_packets.Read(), 1u);
  EXPECT_EQ(peer.host().memory()[kTarget], 0) << "nothing ahead is executed";

  // In order again, then a second gap: a second NAK.
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_TRUE(peer.Out().empty());
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
}

TEST(ResponderOrder, DuplicateDuringGap_AnsweredWithoutEndingTheSilence) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().syndrome(), 0x60);
  EXPECT_EQ(
      peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4, 99)),
      DropReason::k_duplicate_request);
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.syndrome(), 0x1F);
  EXPECT_EQ(ack.psn(), kPsn);
  EXPECT_EQ(peer.host().memory()[kTarget], ScriptedPeer::Bytes(1)[0]) << "never executed again";
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 3, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_TRUE(peer.Out().empty());
}

TEST(ResponderOrder, DuplicateSend_AcknowledgesTheNewest) {
  ScriptedPeer peer;
  peer.PostReceive(kTarget, 64);
  peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 1, kTarget + 64, 4), ScriptedPeer::Bytes(4));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.Poll().size(), 1u);
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendOnly, kPsn), ScriptedPeer::Bytes(8)),
            DropReason::k_duplicate_request);
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.psn(), kPsn + 1);
  EXPECT_EQ(ack.headers.aeth.msn, 2u);
  EXPECT_TRUE(peer.Poll().empty()) << "no second receive";
}

// Some requesters (Linux rxe) take a plain acknowledgement with a READ's PSN for its response and
// complete the READ without data.
TEST(ResponderOrder, DuplicateBeforeARead_AcknowledgesUpToTheReadOnly) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 1, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Read(kPsn + 2, kTarget, 100));
  peer.Deliver(peer.Read(kPsn + 3, kTarget, 100));
  EXPECT_EQ(peer.Out().size(), 2u) << "which were lost, let us say";
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  const SentPacket ack = peer.OutOne();
  EXPECT_EQ(ack.opcode(), Opcode::kRcAck);
  EXPECT_EQ(ack.syndrome(), 0x1F);
  EXPECT_EQ(ack.psn(), kPsn + 1);
  EXPECT_EQ(ack.headers.aeth.msn, 2u);
}

TEST(ResponderOrder, DuplicateBeforeAnAtomic_AcknowledgesUpToTheAtomicOnly) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.FetchAdd(kPsn + 1, kTarget + 64, 1));
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().psn(), kPsn);
  // The acknowledgement behind the atomic covers everything again.
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 2);
}

TEST(ResponderOrder, DuplicateBeforeARead_TakesNothingBackFromALaterAcknowledgement) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Read(kPsn + 1, kTarget, 100));
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + 2, kTarget, 4, true),
               ScriptedPeer::Bytes(4));
  peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4));
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 2);
}

TEST(ResponderOrder, EveryPsnAroundTheWrap_InOrder) {
  ScriptedPeer::Options options;
  options.peer_psn = 0xFFFFFE;
  ScriptedPeer peer(options);
  for (uint32_t i = 0; i < 5; ++i) {
    const uint32_t psn = (0xFFFFFE + i) & 0xFFFFFF;
    EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, psn, kTarget, 4, true),
                           ScriptedPeer::Bytes(4)),
              DropReason::kNone)
        << psn;
    EXPECT_EQ(peer.OutOne().psn(), psn);
  }
}

TEST(ResponderOrder, HalfTheSpaceAhead_IsFuture_OneMoreIsPast) {
  ScriptedPeer::Options options;
  options.peer_psn = 5;
  ScriptedPeer peer(options);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, 5 + (1 << 23) - 1, kTarget, 4),
                         ScriptedPeer::Bytes(4)),
            DropReason::k_sequence_gap);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, 5 + (1 << 23), kTarget, 4),
                         ScriptedPeer::Bytes(4)),
            DropReason::k_duplicate_request);
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, 4, kTarget, 4), ScriptedPeer::Bytes(4)),
            DropReason::k_duplicate_request);
}

// Opcode sequences: packets before, the packet under test, and whether it is in sequence.
struct Sequence {
  const char* name;
  std::vector<Opcode> before;
  Opcode then;
  bool accepted;
};

class ResponderSequence : public ::testing::TestWithParam<Sequence> {};

wire::Headers RequestOf(const ScriptedPeer& peer, Opcode opcode, uint32_t psn, uint32_t* length) {
  const wire::OpcodeTraits& traits = wire::TraitsOf(opcode);
  *length = !traits.has_payload ? 0 : traits.ends_message() ? 8 : peer.mtu();
  if (traits.has_atomic_eth) {
    return opcode == Opcode::kRcCompareSwap ? peer.CompareSwap(psn, kTarget, 0, 0)
                                            : peer.FetchAdd(psn, kTarget, 0);
  }
  if (!traits.has_reth) return peer.To(opcode, psn);
  // First packet of a message of three packets, the last with 8 bytes.
  const uint32_t message = opcode == Opcode::kRcWriteFirst    ? 2 * peer.mtu() + 8
                           : opcode == Opcode::kRcReadRequest ? 16
                                                              : *length;
  return peer.Write(opcode, psn, kTarget, message);
}

TEST_P(ResponderSequence, Packet_AcceptedOrNaked) {
  const Sequence& sequence = GetParam();
  ScriptedPeer peer;
  for (int i = 0; i < 4; ++i) peer.PostReceive(0x8000, 4096);
  uint32_t psn = kPsn;
  uint32_t length = 0;
  for (Opcode opcode : sequence.before) {
    const wire::Headers headers = RequestOf(peer, opcode, psn, &length);
    ASSERT_EQ(peer.Deliver(headers, ScriptedPeer::Bytes(length)), DropReason::kNone);
    ++psn;
  }
  peer.Out();
  peer.Poll();
  const wire::Headers headers = RequestOf(peer, sequence.then, psn, &length);
  const DropReason reason = peer.Deliver(headers, ScriptedPeer::Bytes(length));
  if (sequence.accepted) {
    EXPECT_EQ(reason, DropReason::kNone);
    EXPECT_EQ(peer.host().context().state(), QpState::kRts);
    return;
  }
  EXPECT_EQ(reason, DropReason::k_invalid_request);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x61);
  EXPECT_EQ(nak.psn(), psn);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kQpRequestError);
  for (const rocegw_cqe& cqe : peer.Poll()) EXPECT_EQ(cqe.status, 5) << "receives are flushed";
}

std::vector<Sequence> Sequences() {
  using enum Opcode;
  std::vector<Sequence> all = {
      {"SendFirstMiddle", {kRcSendFirst}, kRcSendMiddle, true},
      {"SendFirstLast", {kRcSendFirst}, kRcSendLast, true},
      {"SendFirstLastImm", {kRcSendFirst}, kRcSendLastImm, true},
      {"SendMiddleMiddle", {kRcSendFirst, kRcSendMiddle}, kRcSendMiddle, true},
      {"SendMiddleLast", {kRcSendFirst, kRcSendMiddle}, kRcSendLast, true},
      {"WriteFirstMiddle", {kRcWriteFirst}, kRcWriteMiddle, true},
      {"WriteMiddleLast", {kRcWriteFirst, kRcWriteMiddle}, kRcWriteLast, true},
      {"WriteMiddleLastImm", {kRcWriteFirst, kRcWriteMiddle}, kRcWriteLastImm, true},
      {"SendAfterSend", {kRcSendOnly}, kRcSendFirst, true},
      {"WriteAfterSend", {kRcSendFirst, kRcSendLast}, kRcWriteFirst, true},
      {"SendWithinWrite", {kRcWriteFirst}, kRcSendMiddle, false},
      {"SendLastWithinWrite", {kRcWriteFirst, kRcWriteMiddle}, kRcSendLast, false},
      {"WriteMiddleWithinSend", {kRcSendFirst}, kRcWriteMiddle, false},
      {"WriteLastWithinSend", {kRcSendFirst}, kRcWriteLast, false},
      {"WriteLastImmWithinSend", {kRcSendFirst}, kRcWriteLastImm, false},
      {"Flush", {}, kRcFlush, false},
      {"AtomicWrite", {}, kRcAtomicWrite, false},
  };
  for (Opcode opcode : {kRcSendMiddle, kRcSendLast, kRcSendLastImm, kRcSendLastInvalidate,
                        kRcWriteMiddle, kRcWriteLast, kRcWriteLastImm}) {
    all.push_back({"FromNothing", {}, opcode, false});
    all.push_back({"AfterOnly", {kRcSendOnly}, opcode, false});
    all.push_back({"AfterRead", {kRcReadRequest}, opcode, false});
  }
  for (Opcode opcode : {kRcSendOnly, kRcSendOnlyImm, kRcWriteOnly, kRcWriteOnlyImm, kRcReadRequest,
                        kRcCompareSwap, kRcFetchAdd}) {
    all.push_back({"Alone", {}, opcode, true});
  }
  for (Opcode opcode :
       {kRcSendFirst, kRcSendOnly, kRcSendOnlyImm, kRcSendOnlyInvalidate, kRcWriteFirst,
        kRcWriteOnly, kRcWriteOnlyImm, kRcReadRequest, kRcCompareSwap, kRcFetchAdd}) {
    all.push_back({"WithinSend", {kRcSendFirst}, opcode, false});
    all.push_back({"WithinWrite", {kRcWriteFirst}, opcode, false});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, ResponderSequence, ::testing::ValuesIn(Sequences()),
                         [](const auto& parameter) {
                           return std::string(parameter.param.name) + "_" +
                                  std::to_string(static_cast<int>(parameter.param.then)) + "_" +
                                  std::to_string(parameter.index);
                         });

struct Length {
  const char* name;
  Opcode opcode;
  uint32_t payload;
  uint32_t message;  // length in the RETH
};

class ResponderLength : public ::testing::TestWithParam<Length> {};

// The MTU is 256.
TEST_P(ResponderLength, WrongPayload_NakInvalidRequest) {
  const Length& wrong = GetParam();
  ScriptedPeer peer;
  peer.PostReceive(0x8000, 4096);
  const auto payload = ScriptedPeer::Bytes(wrong.payload);
  EXPECT_EQ(peer.Deliver(peer.Write(wrong.opcode, kPsn, kTarget, wrong.message), payload),
            DropReason::k_invalid_request);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x61);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_EQ(peer.host().memory()[kTarget], 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, ResponderLength,
    ::testing::Values(Length{"SendFirstShort", Opcode::kRcSendFirst, 252, 0},
                      Length{"SendFirstLong", Opcode::kRcSendFirst, 260, 0},
                      Length{"SendOnlyLong", Opcode::kRcSendOnly, 257, 0},
                      Length{"WriteFirstShort", Opcode::kRcWriteFirst, 252, 600},
                      Length{"WriteFirstLong", Opcode::kRcWriteFirst, 512, 1000},
                      Length{"WriteFirstThatIsAll", Opcode::kRcWriteFirst, 256, 256},
                      Length{"WriteFirstMoreThanAll", Opcode::kRcWriteFirst, 256, 100},
                      Length{"WriteOnlyLessThanSaid", Opcode::kRcWriteOnly, 100, 101},
                      Length{"WriteOnlyMoreThanSaid", Opcode::kRcWriteOnly, 100, 99},
                      Length{"WriteOnlyNothingSaid", Opcode::kRcWriteOnly, 4, 0},
                      Length{"WriteOnlyLong", Opcode::kRcWriteOnly, 260, 260},
                      Length{"WriteImmOnlyLong", Opcode::kRcWriteOnlyImm, 260, 260}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(ResponderLength, LastOfWrite_LongerOrShorterThanWhatIsLeft_Nak) {
  for (uint32_t last : {7u, 9u, 256u}) {
    ScriptedPeer peer;
    peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, 256 + 8),
                 ScriptedPeer::Bytes(256));
    EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcWriteLast, kPsn + 1), ScriptedPeer::Bytes(last)),
              DropReason::k_invalid_request)
        << last;
    EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
    EXPECT_EQ(peer.host().memory()[kTarget + 256], 0);
  }
}

TEST(ResponderLength, MiddleOfWrite_ThatIsAllThatIsLeft_Nak) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, 512), ScriptedPeer::Bytes(256));
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcWriteMiddle, kPsn + 1), ScriptedPeer::Bytes(256)),
            DropReason::k_invalid_request);
}

TEST(ResponderLength, MiddleOfSend_NotTheMtu_Nak) {
  ScriptedPeer peer;
  peer.PostReceive(0x8000, 4096);
  peer.Deliver(peer.To(Opcode::kRcSendFirst, kPsn), ScriptedPeer::Bytes(256));
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcSendMiddle, kPsn + 1), ScriptedPeer::Bytes(128)),
            DropReason::k_invalid_request);
}

TEST(ResponderLength, FullMtuAtEveryCode_Accepted) {
  for (uint8_t code = 1; code <= 5; ++code) {
    ScriptedPeer::Options options;
    options.mtu = code;
    ScriptedPeer peer(options);
    const uint32_t mtu = 128u << code;
    const auto data = ScriptedPeer::Bytes(mtu);
    EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, mtu + 1), data),
              DropReason::kNone);
    EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcWriteLast, kPsn + 1, true), ScriptedPeer::Bytes(1)),
              DropReason::kNone);
    const SentPacket ack = peer.OutOne();
    EXPECT_EQ(ack.psn(), kPsn + 1);
    EXPECT_EQ(ack.headers.aeth.msn, 1u);
    EXPECT_EQ(std::memcmp(&peer.host().memory()[kTarget], data.data(), mtu), 0);
    EXPECT_EQ(peer.host().memory()[kTarget + mtu], 1);
  }
}

TEST(ResponderPeer, WrongAddressOrService_DroppedWithoutTrace) {
  ScriptedPeer peer;
  const wire::Headers headers = peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4, true);
  WirePacket packet = peer.Build(headers, ScriptedPeer::Bytes(4));
  {
    // The ICRC covers the addresses, so it is computed for the changed ones.
    WirePacket other = packet;
    other.meta.source = wire::Gid::FromV4(0xC0000203);
    wire::Path path;
    path.source = other.meta.source;
    path.destination = other.meta.destination;
    path.source_port = other.meta.source_port;
    wire::SealIcrc(path, other.meta.ip_id, other.bytes.data(), other.bytes.size() - 4);
    EXPECT_EQ(peer.DeliverRaw(other), DropReason::k_wrong_address);
    other = packet;
    other.meta.destination = path.destination = wire::Gid::FromV4(0xC0000204);
    path.source = other.meta.source;
    wire::SealIcrc(path, other.meta.ip_id, other.bytes.data(), other.bytes.size() - 4);
    EXPECT_EQ(peer.DeliverRaw(other), DropReason::k_wrong_address);
  }
  EXPECT_EQ(
      peer.Deliver(peer.Write(Opcode::kUcWriteOnly, kPsn, kTarget, 4), ScriptedPeer::Bytes(4)),
      DropReason::k_wrong_service);
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kUdSendOnly, kPsn), ScriptedPeer::Bytes(4)),
            DropReason::k_wrong_service);
  packet.bytes.back() ^= 1;
  EXPECT_EQ(peer.DeliverRaw(packet), DropReason::k_bad_icrc);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.host().memory()[kTarget], 0);
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn);
}

TEST(ResponderPeer, CnpFromElsewhere_NotTaken) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kCnp, 0)), DropReason::kNone);
  EXPECT_EQ(peer.host().counters().cnp_rx_packets.Read(), 1u);
  WirePacket other = peer.Build(peer.To(Opcode::kCnp, 0), {});
  other.meta.source = wire::Gid::FromV4(0xC0000203);
  wire::Path path;
  path.source = other.meta.source;
  path.destination = other.meta.destination;
  path.source_port = other.meta.source_port;
  wire::SealIcrc(path, other.meta.ip_id, other.bytes.data(), other.bytes.size() - 4);
  EXPECT_EQ(peer.DeliverRaw(other), DropReason::k_wrong_address);
  EXPECT_EQ(peer.host().counters().cnp_rx_packets.Read(), 1u);
}

TEST(ResponderState, RequestInEveryState_TakenFromRtrToSqd) {
  for (QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts,
                        QpState::kSqd, QpState::kError}) {
    SCOPED_TRACE(static_cast<int>(state));
    ScriptedPeer::Options options;
    options.state = state;
    ScriptedPeer peer(options);
    const bool taken = state == QpState::kRtr || state == QpState::kRts || state == QpState::kSqd;
    EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn, kTarget, 4, true),
                           ScriptedPeer::Bytes(4)),
              taken ? DropReason::kNone : DropReason::k_qp_state);
    EXPECT_EQ(peer.Out().size(), taken ? 1u : 0u);
    EXPECT_EQ(peer.host().memory()[kTarget], taken ? 1 : 0);
    EXPECT_EQ(peer.host().events.size(), state == QpState::kRtr ? 1u : 0u);
  }
}

TEST(ResponderState, FirstRequestInRtr_RaisesCommEstablishedOnce) {
  ScriptedPeer::Options options;
  options.state = QpState::kRtr;
  ScriptedPeer peer(options);
  for (uint32_t i = 0; i < 3; ++i) {
    peer.Deliver(peer.Write(Opcode::kRcWriteOnly, kPsn + i, kTarget, 4), ScriptedPeer::Bytes(4));
  }
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0], verbs::AsyncEvent::kCommEstablished);
}

}  // namespace
}  // namespace rocegw::testing::responder_sequence
