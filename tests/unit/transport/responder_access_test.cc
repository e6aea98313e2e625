// SPDX-License-Identifier: Apache-2.0
// Access checks of an RC responder: keys, rights, ranges, alignment, depth. A refusal is a NAK and
// the error state, and changes no byte.
#include <gtest/gtest.h>

#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::responder_access {
namespace {

using metrics::DropReason;
using verbs::AsyncEvent;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kPeerPsn;
constexpr uint64_t kTarget = 0x1000;

void ExpectRefused(ScriptedPeer& peer, uint8_t syndrome, uint32_t psn) {
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.opcode(), Opcode::kRcAck);
  EXPECT_EQ(nak.syndrome(), syndrome);
  EXPECT_EQ(nak.psn(), psn);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  ASSERT_EQ(peer.host().events.size(), 1u);
  EXPECT_EQ(peer.host().events[0],
            syndrome == 0x62 ? AsyncEvent::kQpAccessError : AsyncEvent::kQpRequestError);
  EXPECT_EQ(peer.host().counters().nak_error_tx_packets.Read(), 1u);
  EXPECT_EQ(peer.host().counters().qp_error_events.Read(), 1u);
  for (uint8_t byte : peer.host().memory()) ASSERT_EQ(byte, 0);
}

enum class Verb { kWrite, kRead, kAtomic };
const char* NameOf(Verb verb) {
  return verb == Verb::kWrite ? "Write" : verb == Verb::kRead ? "Read" : "Atomic";
}

wire::Headers Request(const ScriptedPeer& peer, Verb verb, uint64_t address, uint32_t key) {
  wire::Headers headers = verb == Verb::kWrite  ? peer.Write(Opcode::kRcWriteOnly, kPsn, 0, 8, true)
                          : verb == Verb::kRead ? peer.Read(kPsn, 0, 8)
                                                : peer.FetchAdd(kPsn, 0, 1);
  headers.reth.address = headers.atomic.address = address;
  headers.reth.rkey = headers.atomic.rkey = key;
  return headers;
}
std::vector<uint8_t> PayloadOf(Verb verb) {
  return verb == Verb::kWrite ? ScriptedPeer::Bytes(8) : std::vector<uint8_t>();
}

class ResponderAccess : public ::testing::TestWithParam<Verb> {};
INSTANTIATE_TEST_SUITE_P(All, ResponderAccess,
                         ::testing::Values(Verb::kWrite, Verb::kRead, Verb::kAtomic),
                         [](const auto& parameter) { return NameOf(parameter.param); });

TEST_P(ResponderAccess, UnknownKey_Nak62) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), peer.host().Address(kTarget), 0x7777),
                         PayloadOf(GetParam())),
            DropReason::k_access_error);
  ExpectRefused(peer, 0x62, kPsn);
}

TEST_P(ResponderAccess, KeyZero_Nak62) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), peer.host().Address(kTarget), 0),
                         PayloadOf(GetParam())),
            DropReason::k_access_error);
  ExpectRefused(peer, 0x62, kPsn);
}

TEST_P(ResponderAccess, OutsideOfTheRegion_Nak62) {
  const uint64_t end = QpHost::kBase + (1 << 20);
  for (uint64_t address : {QpHost::kBase - 8, end - (GetParam() == Verb::kAtomic ? 0 : 7), end,
                           uint64_t{0}, ~uint64_t{0} - 7, QpHost::kBase + (uint64_t{1} << 32)}) {
    SCOPED_TRACE(address);
    ScriptedPeer peer;
    EXPECT_EQ(
        peer.Deliver(Request(peer, GetParam(), address, peer.host().key()), PayloadOf(GetParam())),
        DropReason::k_access_error);
    ExpectRefused(peer, 0x62, kPsn);
  }
}

TEST_P(ResponderAccess, LastBytesOfTheRegion_Accepted) {
  ScriptedPeer peer;
  EXPECT_EQ(
      peer.Deliver(Request(peer, GetParam(), QpHost::kBase + (1 << 20) - 8, peer.host().key()),
                   PayloadOf(GetParam())),
      DropReason::kNone);
  EXPECT_EQ(peer.Out().size(), 1u);
}

TEST_P(ResponderAccess, RegionOfAnotherPdOrSession_Nak62) {
  for (bool other_pd : {true, false}) {
    ScriptedPeer peer;
    verbs::RegionConfig region;
    region.key = MemoryKey{0x9999};
    region.session = SessionId{other_pd ? 1u : 2u};
    region.pd = other_pd ? 2 : 1;
    region.access = 15;
    region.iova = region.address = QpHost::kBase;
    region.length = 4096;
    ASSERT_TRUE(peer.host().regions().Link(region));
    EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), QpHost::kBase, 0x9999), PayloadOf(GetParam())),
              DropReason::k_access_error);
    ExpectRefused(peer, 0x62, kPsn);
  }
}

TEST_P(ResponderAccess, RegionWithoutTheRight_Nak62) {
  const uint32_t right = GetParam() == Verb::kWrite  ? verbs::kAccessRemoteWrite
                         : GetParam() == Verb::kRead ? verbs::kAccessRemoteRead
                                                     : verbs::kAccessRemoteAtomic;
  ScriptedPeer peer;
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = 15 & ~right;
  region.iova = region.address = QpHost::kBase;
  region.length = 4096;
  ASSERT_TRUE(peer.host().regions().Link(region));
  EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), QpHost::kBase, 0x9999), PayloadOf(GetParam())),
            DropReason::k_access_error);
  ExpectRefused(peer, 0x62, kPsn);
}

TEST_P(ResponderAccess, QpWithoutTheRight_Nak61) {
  ScriptedPeer::Options options;
  const uint32_t right = GetParam() == Verb::kWrite  ? verbs::kAccessRemoteWrite
                         : GetParam() == Verb::kRead ? verbs::kAccessRemoteRead
                                                     : verbs::kAccessRemoteAtomic;
  options.limits.access = 15 & ~right;
  ScriptedPeer peer(options);
  EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), QpHost::kBase, peer.host().key()),
                         PayloadOf(GetParam())),
            DropReason::k_invalid_request);
  ExpectRefused(peer, 0x61, kPsn);
}

TEST_P(ResponderAccess, RegionDeregistered_Nak62) {
  ScriptedPeer peer;
  ASSERT_TRUE(peer.host().regions().Unlink(MemoryKey{peer.host().key()}));
  EXPECT_EQ(peer.Deliver(Request(peer, GetParam(), QpHost::kBase, peer.host().key()),
                         PayloadOf(GetParam())),
            DropReason::k_access_error);
  ExpectRefused(peer, 0x62, kPsn);
}

TEST(ResponderWrite, RegionGoneBetweenPackets_Nak62AtThatPacket) {
  ScriptedPeer peer;
  peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, 512), ScriptedPeer::Bytes(256));
  peer.Out();
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  EXPECT_EQ(peer.Deliver(peer.To(Opcode::kRcWriteLast, kPsn + 1), ScriptedPeer::Bytes(256)),
            DropReason::k_access_error);
  const SentPacket nak = peer.OutOne();
  EXPECT_EQ(nak.syndrome(), 0x62);
  EXPECT_EQ(nak.psn(), kPsn + 1);
  EXPECT_EQ(peer.host().memory()[kTarget + 256], 0);
}

TEST(ResponderWrite, WholeRangeCheckedAtTheFirstPacket) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, (1 << 20) - 256, 257),
                         ScriptedPeer::Bytes(256)),
            DropReason::k_access_error);
  ExpectRefused(peer, 0x62, kPsn);
}

TEST(ResponderWrite, LongerThanAMessageMayBe_Nak61) {
  for (Opcode opcode : {Opcode::kRcWriteFirst, Opcode::kRcReadRequest}) {
    ScriptedPeer peer;
    const bool write = opcode == Opcode::kRcWriteFirst;
    EXPECT_EQ(peer.Deliver(peer.Write(opcode, kPsn, kTarget, 0x80000001),
                           ScriptedPeer::Bytes(write ? 256 : 0)),
              DropReason::k_invalid_request);
    ExpectRefused(peer, 0x61, kPsn);
  }
}

TEST(ResponderWrite, LargestMessage_ChecksTheRange) {
  ScriptedPeer peer;
  EXPECT_EQ(peer.Deliver(peer.Write(Opcode::kRcWriteFirst, kPsn, kTarget, 0x80000000),
                         ScriptedPeer::Bytes(256)),
            DropReason::k_access_error);
}

TEST(ResponderWrite, ZeroLength_KeyNotLookedAt) {
  ScriptedPeer peer;
  wire::Headers headers = peer.Write(Opcode::kRcWriteOnly, kPsn, 0, 0, true);
  headers.reth.address = ~uint64_t{0};
  headers.reth.rkey = 0xDEAD;
  EXPECT_EQ(peer.Deliver(headers), DropReason::kNone);
  EXPECT_EQ(peer.OutOne().syndrome(), 0x1F);
  EXPECT_TRUE(peer.host().queued().empty());
}

TEST(ResponderRead, ZeroLength_KeyNotLookedAt_ResponseOnlyWithAeth) {
  ScriptedPeer peer;
  wire::Headers headers = peer.Read(kPsn, 0, 0);
  headers.reth.address = ~uint64_t{0};
  headers.reth.rkey = 0xDEAD;
  EXPECT_EQ(peer.Deliver(headers), DropReason::kNone);
  const SentPacket response = peer.OutOne();
  EXPECT_EQ(response.opcode(), Opcode::kRcReadResponseOnly);
  EXPECT_EQ(response.psn(), kPsn);
  EXPECT_EQ(response.syndrome(), 0x1F);
  EXPECT_EQ(response.headers.aeth.msn, 1u);
  EXPECT_TRUE(response.payload.empty());
  EXPECT_EQ(peer.host().qp().psns().expected.value, kPsn + 1);
}

TEST(ResponderAtomic, Misaligned_Nak61BeforeTheKey) {
  for (uint64_t offset : {1, 4, 7}) {
    ScriptedPeer peer;
    wire::Headers headers = peer.FetchAdd(kPsn, kTarget + offset, 1);
    headers.atomic.rkey = 0xDEAD;
    EXPECT_EQ(peer.Deliver(headers), DropReason::k_invalid_request);
    ExpectRefused(peer, 0x61, kPsn);
  }
}

TEST(ResponderAtomic, FetchAdd_AddsAndAnswersTheOriginal) {
  ScriptedPeer peer;
  const uint64_t before = 0x1122334455667788;
  std::memcpy(&peer.host().memory()[kTarget], &before, 8);
  EXPECT_EQ(peer.Deliver(peer.FetchAdd(kPsn, kTarget, 0x10)), DropReason::kNone);
  const SentPacket answer = peer.OutOne();
  EXPECT_EQ(answer.opcode(), Opcode::kRcAtomicAck);
  EXPECT_EQ(answer.headers.atomic_ack, before);
  EXPECT_EQ(answer.psn(), kPsn);
  EXPECT_EQ(answer.headers.aeth.msn, 1u);
  uint64_t after;
  std::memcpy(&after, &peer.host().memory()[kTarget], 8);
  EXPECT_EQ(after, before + 0x10);
}

TEST(ResponderAtomic, CompareSwap_SwapsOnlyWhenEqual) {
  ScriptedPeer peer;
  const uint64_t before = 42;
  std::memcpy(&peer.host().memory()[kTarget], &before, 8);
  peer.Deliver(peer.CompareSwap(kPsn, kTarget, 41, 7));
  EXPECT_EQ(peer.OutOne().headers.atomic_ack, 42u);
  uint64_t now;
  std::memcpy(&now, &peer.host().memory()[kTarget], 8);
  EXPECT_EQ(now, 42u);
  peer.Deliver(peer.CompareSwap(kPsn + 1, kTarget, 42, 7));
  EXPECT_EQ(peer.OutOne().headers.atomic_ack, 42u);
  std::memcpy(&now, &peer.host().memory()[kTarget], 8);
  EXPECT_EQ(now, 7u);
}

TEST(ResponderDepth, MoreReadsThanResources_Nak61) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 2;
  ScriptedPeer peer(options);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, kTarget, 8)), DropReason::kNone);
  EXPECT_EQ(peer.Deliver(peer.FetchAdd(kPsn + 1, kTarget, 0)), DropReason::kNone);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 2, kTarget, 8)), DropReason::k_invalid_request);
  const std::vector<SentPacket> out = peer.Out();
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.back().syndrome(), 0x61);
  EXPECT_EQ(out.back().psn(), kPsn + 2);
}

TEST(ResponderDepth, AnsweredReads_FreeTheirResources) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 1;
  ScriptedPeer peer(options);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(peer.Deliver(peer.Read(kPsn + i, kTarget, 8)), DropReason::kNone);
    EXPECT_EQ(peer.Out().size(), 1u);
  }
}

TEST(ResponderDepth, LateAnswersThenRepetitionsQueued_NewReadsAreAccepted) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 2;
  ScriptedPeer peer(options);
  peer.Deliver(peer.Read(kPsn, 0x1000, 8));
  peer.Deliver(peer.Read(kPsn + 1, 0x1000, 8));
  EXPECT_EQ(peer.Out().size(), 2u);
  // The responses were slow: the peer repeated both requests, then got the responses, and
  // continues.
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn, 0x1000, 8)), DropReason::k_duplicate_request);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 1, 0x1000, 8)), DropReason::k_duplicate_request);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 2, 0x1000, 8)), DropReason::kNone);
  EXPECT_EQ(peer.Deliver(peer.Read(kPsn + 3, 0x1000, 8)), DropReason::kNone);
  EXPECT_EQ(peer.Out().size(), 4u);
}

TEST(ResponderDepth, RepetitionsWithoutEnd_AreQueuedUpToTheDepth) {
  ScriptedPeer::Options options;
  options.limits.max_dest_rd_atomic = 2;
  ScriptedPeer peer(options);
  peer.Deliver(peer.Read(kPsn, 0x1000, 256 * 8));
  EXPECT_EQ(peer.Out().size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(peer.Deliver(peer.Read(kPsn + i, 0x1000 + 256 * i, 256 * (8 - i))),
              i < 2 ? DropReason::k_duplicate_request : DropReason::k_duplicate_invalid);
  }
}

TEST(ResponderDepth, NoResources_AnyReadOrAtomicIsNak61) {
  for (bool atomic : {false, true}) {
    ScriptedPeer::Options options;
    options.limits.max_dest_rd_atomic = 0;
    ScriptedPeer peer(options);
    EXPECT_EQ(peer.Deliver(atomic ? peer.FetchAdd(kPsn, kTarget, 1) : peer.Read(kPsn, kTarget, 8)),
              DropReason::k_invalid_request);
    ExpectRefused(peer, 0x61, kPsn);
  }
}

}  // namespace
}  // namespace rocegw::testing::responder_access
