// SPDX-License-Identifier: Apache-2.0
// Packets that an RC requester sends: segmentation, headers, acknowledgement requests, and what
// makes the requester wait.
#include <gtest/gtest.h>

#include <algorithm>

#include "gateway/transport/native/requester.h"
#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::requester_send {
namespace {

using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint64_t kSource = 0x1000;

std::vector<uint8_t> Fill(ScriptedPeer& peer, uint64_t offset, uint32_t length) {
  const auto data = ScriptedPeer::Bytes(length, 23);
  std::ranges::copy(data, peer.host().memory().begin() + static_cast<ptrdiff_t>(offset));
  return data;
}

std::vector<uint8_t> Join(const std::vector<SentPacket>& out) {
  std::vector<uint8_t> bytes;
  for (const SentPacket& packet : out)
    bytes.insert(bytes.end(), packet.payload.begin(), packet.payload.end());
  return bytes;
}

rocegw_send_wqe Wqe(uint8_t opcode, uint16_t flags = ROCEGW_WQE_SIGNALED) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = 1;
  wqe.opcode = opcode;
  wqe.flags = flags;
  wqe.imm_or_rkey = 0x01020304;
  wqe.u.rdma.remote_address = 0x7000;
  wqe.u.rdma.rkey = 0x5EED;
  return wqe;
}

struct Segmenting {
  uint8_t mtu;
  uint8_t opcode;
};
class RequesterSegments : public ::testing::TestWithParam<Segmenting> {};

TEST_P(RequesterSegments, LengthsAroundTheMtu_FirstMiddleLast) {
  const auto [code, opcode] = GetParam();
  const uint32_t mtu = 128u << code;
  const bool write = opcode == ROCEGW_WR_RDMA_WRITE || opcode == ROCEGW_WR_RDMA_WRITE_WITH_IMM;
  const bool immediate =
      opcode == ROCEGW_WR_SEND_WITH_IMM || opcode == ROCEGW_WR_RDMA_WRITE_WITH_IMM;
  const auto base = static_cast<int>(write ? Opcode::kRcWriteFirst : Opcode::kRcSendFirst);
  for (uint32_t length : {0u, 1u, mtu - 1, mtu, mtu + 1, 3 * mtu, 3 * mtu + 5}) {
    SCOPED_TRACE(length);
    ScriptedPeer::Options options;
    options.mtu = code;
    ScriptedPeer peer(options);
    const auto data = Fill(peer, kSource, length);
    peer.host().PostSend(Wqe(opcode), {{kSource, length}});
    const auto out = peer.Out();
    const size_t packets = std::max<size_t>(1, (length + mtu - 1) / mtu);
    ASSERT_EQ(out.size(), packets);
    EXPECT_EQ(Join(out), data);
    for (size_t i = 0; i < packets; ++i) {
      const bool first = i == 0;
      const bool last = i + 1 == packets;
      // Opcodes in this order: First, Middle, Last, LastImm, Only, OnlyImm.
      const int at = first && last ? 4 + immediate : first ? 0 : last ? 2 + immediate : 1;
      EXPECT_EQ(static_cast<int>(out[i].opcode()), base + at);
      EXPECT_EQ(out[i].psn(), kPsn + i);
      EXPECT_EQ(out[i].payload.size(), last ? length - (packets - 1) * mtu : mtu);
      EXPECT_EQ(out[i].headers.bth.ack_request, last);
      EXPECT_EQ(out[i].headers.bth.pkey, 0xFFFF);
      if (immediate && last) {
        EXPECT_EQ(out[i].headers.immediate, 0x01020304u);
      }
      if (write && first) {
        EXPECT_EQ(out[i].headers.reth.address, 0x7000u);
        EXPECT_EQ(out[i].headers.reth.rkey, 0x5EEDu);
        EXPECT_EQ(out[i].headers.reth.length, length) << "of the whole message";
      }
    }
    peer.Deliver(peer.Ack(kPsn + static_cast<uint32_t>(packets) - 1));
    const rocegw_cqe cqe = peer.PollOne();
    EXPECT_EQ(cqe.status, 0);
    EXPECT_EQ(cqe.opcode, write ? 1 : 0);
    EXPECT_EQ(cqe.byte_length, length);
    EXPECT_EQ(cqe.qpn, 0x11u);
  }
}

std::vector<Segmenting> AllSegmentings() {
  std::vector<Segmenting> all;
  for (uint8_t code = 1; code <= 5; ++code) {
    for (uint8_t opcode : {ROCEGW_WR_SEND, ROCEGW_WR_SEND_WITH_IMM, ROCEGW_WR_RDMA_WRITE,
                           ROCEGW_WR_RDMA_WRITE_WITH_IMM}) {
      all.push_back({code, opcode});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, RequesterSegments, ::testing::ValuesIn(AllSegmentings()),
                         [](const auto& parameter) {
                           return "mtu" + std::to_string(parameter.param.mtu) + "_opcode" +
                                  std::to_string(parameter.param.opcode);
                         });

TEST(RequesterSend, PsnWrap) {
  ScriptedPeer::Options options;
  options.host_psn = 0xFFFFFF;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 600);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].psn(), 0xFFFFFFu);
  EXPECT_EQ(out[1].psn(), 0u);
  peer.Deliver(peer.Ack(1));
  EXPECT_EQ(peer.PollOne().status, 0);
}

TEST(RequesterSend, ListOfPieces_OneStream) {
  ScriptedPeer peer;
  const auto data = Fill(peer, kSource, 1000);
  peer.host().PostSend(Wqe(ROCEGW_WR_SEND),
                       {{kSource, 300}, {0, 0}, {kSource + 300, 1}, {kSource + 301, 699}});
  EXPECT_EQ(Join(peer.Out()), data);
}

TEST(RequesterSend, Inline_SentFromTheRing_KeysNotLookedAt) {
  ScriptedPeer peer;
  const auto data = ScriptedPeer::Bytes(100);
  ASSERT_TRUE(peer.host().rings().PostSend(
      Wqe(ROCEGW_WR_SEND, ROCEGW_WQE_INLINE | ROCEGW_WQE_SIGNALED), {{1, 100, 0xBAD}}, &data));
  peer.host().Pump(peer.now());
  EXPECT_TRUE(peer.host().queued().empty());
  EXPECT_EQ(peer.OutOne().payload, data);
}

TEST(RequesterSend, Copied_SentFromTheRing_KeysChecked) {
  for (bool good : {true, false}) {
    ScriptedPeer peer;
    const auto data = ScriptedPeer::Bytes(100);
    const uint32_t key = good ? peer.host().key() : 0xBAD;
    ASSERT_TRUE(
        peer.host().rings().PostSend(Wqe(ROCEGW_WR_SEND, ROCEGW_WQE_COPIED | ROCEGW_WQE_SIGNALED),
                                     {{peer.host().Address(kSource), 100, key}}, &data));
    const auto out = peer.Out();
    if (good) {
      ASSERT_EQ(out.size(), 1u);
      EXPECT_EQ(out[0].payload, data);
    } else {
      EXPECT_TRUE(out.empty());
      EXPECT_EQ(peer.PollOne().status, 4) << "IBV_WC_LOC_PROT_ERR";
    }
  }
}

TEST(RequesterSend, InlineAcrossPackets_EachItsPart) {
  ScriptedPeer::Options options;
  options.host.payload_stride = 1024;
  ScriptedPeer peer(options);
  const auto data = ScriptedPeer::Bytes(700);
  ASSERT_TRUE(peer.host().rings().PostSend(
      Wqe(ROCEGW_WR_RDMA_WRITE, ROCEGW_WQE_INLINE | ROCEGW_WQE_SIGNALED), {{1, 700, 0}}, &data));
  EXPECT_EQ(Join(peer.Out()), data);
}

TEST(RequesterSend, Solicited_OnTheLastPacket) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 300, ROCEGW_WQE_SIGNALED | ROCEGW_WQE_SOLICITED);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_FALSE(out[0].headers.bth.solicited);
  EXPECT_TRUE(out[1].headers.bth.solicited);
}

TEST(RequesterSend, PathOfTheAttributes) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.host().Pump(peer.now());
  peer.host().Settle();
  ASSERT_EQ(peer.host().sent.size(), 1u);
  EXPECT_EQ(peer.host().sent[0].meta.source_port, 0xD234);
  EXPECT_EQ(peer.host().sent[0].meta.source, wire::Gid::FromV4(0xC0000201));
}

TEST(RequesterAckRequest, Unsignaled_OnlyTheLastOfTheQueueAndEverySixteenth) {
  ScriptedPeer peer;
  for (int i = 0; i < 40; ++i) peer.PostSend(kSource, 4, 0);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(out[i].headers.bth.ack_request, i % 16 == 15 || i == 39) << i;
  }
  peer.Deliver(peer.Ack(kPsn + 39));
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().context().sends_completed(), 40u);
  EXPECT_EQ(peer.host().context().sq().released(), 40u);
}

TEST(RequesterAckRequest, LongMessage_AsksOnItsWay) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 40);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(out[i].headers.bth.ack_request, i % 16 == 15 || i == 39) << i;
  }
}

TEST(RequesterAckRequest, WindowNearlyFull_Asks) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 4 * 256;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 256 * 10);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 4u) << "the window";
  EXPECT_TRUE(out[3].headers.bth.ack_request) << "or nothing would ever open it again";
}

TEST(RequesterAckRequest, WindowTooSmallForTheReadThatFollows_Asks) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 4096;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 16, 0);
  peer.PostRead(0x8000, 8192);
  auto out = peer.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_TRUE(out[0].headers.bth.ack_request);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.OutOne().opcode(), Opcode::kRcReadRequest);
}

TEST(RequesterWindow, NeverMoreInFlight_OnePacketAlways) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 600;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 256 * 5);
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.Deliver(peer.Ack(kPsn + 2));
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.Deliver(peer.Ack(kPsn + 4));
  EXPECT_EQ(peer.PollOne().status, 0);

  options.host.cc.window_bytes = 1;
  ScriptedPeer narrow(options);
  narrow.PostSend(kSource, 512);
  EXPECT_EQ(narrow.Out().size(), 1u);
  narrow.Deliver(narrow.Ack(kPsn));
  EXPECT_EQ(narrow.Out().size(), 1u);
}

TEST(RequesterWindow, PortDry_ResumesWhereItStopped) {
  ScriptedPeer peer;
  const auto data = Fill(peer, kSource, 256 * 6);
  peer.PostSend(kSource, 256 * 6);
  peer.host().port_budget = 4;
  auto out = peer.Out();
  EXPECT_EQ(out.size(), 4u);
  peer.host().port_budget = 100;
  for (SentPacket& packet : peer.Out()) out.push_back(std::move(packet));
  EXPECT_EQ(Join(out), data);
}

TEST(RequesterWindow, PumpBudget_Kept) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 10);
  transport::PumpBudget budget{3};
  EXPECT_EQ(peer.host().qp().Pump(peer.host(), peer.now(), budget), transport::PumpResult::kMore);
  peer.host().Settle();
  EXPECT_EQ(peer.host().sent.size(), 3u);
}

TEST(RequesterWindow, PumpBudgetOfBytes_EndsWithThePacketThatReachesIt) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 256 * 10);
  transport::PumpBudget budget{100, 256 * 2 + 1};
  EXPECT_EQ(peer.host().qp().Pump(peer.host(), peer.now(), budget), transport::PumpResult::kMore);
  EXPECT_EQ(budget.packets, 97u);
  EXPECT_EQ(budget.bytes, 1 - 256);
  EXPECT_EQ(budget.asked, 0u);
}

TEST(RequesterWindow, PumpBudgetOfBytes_ReadCountsWhatItAsksFor) {
  ScriptedPeer peer;
  peer.PostRead(kSource, 256 * 10);
  transport::PumpBudget budget{100, 100000};
  peer.host().qp().Pump(peer.host(), peer.now(), budget);
  EXPECT_EQ(budget.packets, 99u);
  EXPECT_EQ(budget.bytes, 100000 - 2560);
  EXPECT_EQ(budget.asked, 2560u);
}

TEST(RequesterFence, WaitsForReadsAndAtomicsBeforeIt) {
  ScriptedPeer peer;
  peer.PostRead(0x8000, 300);
  peer.PostFetchAdd(0x9000, 1);
  peer.PostSend(kSource, 8);
  peer.PostSend(kSource, 8, ROCEGW_WQE_SIGNALED | ROCEGW_WQE_FENCE);
  auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[2].opcode(), Opcode::kRcSendOnly) << "without a fence it may overtake";
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), ScriptedPeer::Bytes(256));
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 1), ScriptedPeer::Bytes(44));
  EXPECT_TRUE(peer.Out().empty()) << "the atomic is still open";
  peer.Deliver(peer.AtomicAck(kPsn + 2, 0));
  out = peer.Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].psn(), kPsn + 4);
}

TEST(RequesterFence, WithoutReads_DoesNotWait) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 8);
  peer.PostSend(kSource, 8, ROCEGW_WQE_SIGNALED | ROCEGW_WQE_FENCE);
  EXPECT_EQ(peer.Out().size(), 2u);
}

TEST(RequesterDepth, NoMoreReadsOutstandingThanAllowed) {
  ScriptedPeer::Options options;
  options.limits.max_rd_atomic = 2;
  ScriptedPeer peer(options);
  peer.PostRead(0x8000, 8);
  peer.PostFetchAdd(0x9000, 1);
  peer.PostRead(0x8000, 8);
  peer.PostSend(kSource, 8);
  EXPECT_EQ(peer.Out().size(), 2u) << "what follows the third READ waits with it";
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.Out().size(), 2u);
}

TEST(RequesterDepth, None_ReadFailsLocally) {
  ScriptedPeer::Options options;
  options.limits.max_rd_atomic = 0;
  ScriptedPeer peer(options);
  peer.PostRead(0x8000, 8);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.PollOne().status, 2) << "IBV_WC_LOC_QP_OP_ERR";
}

TEST(RequesterRead, Request_HeadersAndPsnRange) {
  ScriptedPeer peer;
  peer.PostRead(0x8000, 1000, 0x123456789A);
  peer.PostSend(kSource, 4);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcReadRequest);
  EXPECT_TRUE(out[0].headers.bth.ack_request);
  EXPECT_EQ(out[0].headers.reth.address, 0x123456789Au);
  EXPECT_EQ(out[0].headers.reth.length, 1000u);
  EXPECT_EQ(out[0].headers.reth.rkey, 0x5EEDu);
  EXPECT_EQ(out[1].psn(), kPsn + 4) << "one PSN per response packet";
}

TEST(RequesterRead, Long_AskedForInPieces) {
  ScriptedPeer::Options options;
  options.mtu = 5;
  options.host.cc.window_bytes = 1 << 20;
  ScriptedPeer peer(options);
  peer.PostRead(0x40000, 300000, 0x10000);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  const uint32_t chunk = transport::kReadChunk;
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(out[i].psn(), kPsn + i * chunk / 4096);
    EXPECT_EQ(out[i].headers.reth.address, 0x10000 + i * chunk);
    EXPECT_EQ(out[i].headers.reth.length, i < 2 ? chunk : 300000 - 2 * chunk);
  }
}

TEST(RequesterAtomic, Request_OperandsInTheirPlaces) {
  ScriptedPeer peer;
  peer.PostFetchAdd(0x8000, 0x1111, 0x7008);
  peer.PostCompareSwap(0x8008, 0x2222, 0x3333, 0x7010);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcFetchAdd);
  EXPECT_EQ(out[0].headers.atomic.address, 0x7008u);
  EXPECT_EQ(out[0].headers.atomic.swap_or_add, 0x1111u);
  EXPECT_EQ(out[1].opcode(), Opcode::kRcCompareSwap);
  EXPECT_EQ(out[1].headers.atomic.compare, 0x2222u);
  EXPECT_EQ(out[1].headers.atomic.swap_or_add, 0x3333u);
  EXPECT_EQ(out[1].headers.atomic.rkey, 0x5EEDu);
  EXPECT_EQ(out[1].psn(), kPsn + 1);
}

struct BadRequest {
  const char* name;
  uint8_t opcode;
  uint16_t flags;
  uint32_t length;
  uint8_t status;
};
class RequesterBad : public ::testing::TestWithParam<BadRequest> {};

TEST_P(RequesterBad, Fails_AfterWhatCameBefore) {
  const BadRequest& bad = GetParam();
  ScriptedPeer peer;
  peer.PostSend(kSource, 4, 0);
  rocegw_send_wqe wqe = Wqe(bad.opcode, bad.flags);
  wqe.wr_id = 77;
  peer.host().PostSend(wqe, {{kSource, bad.length}});
  peer.PostSend(kSource, 4);
  EXPECT_EQ(peer.Out().size(), 1u);
  EXPECT_TRUE(peer.Poll().empty()) << "the first one is not answered yet";
  peer.Deliver(peer.Ack(kPsn));
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].wr_id, 77u);
  EXPECT_EQ(cqes[0].status, bad.status);
  EXPECT_EQ(cqes[1].status, 5);
  EXPECT_EQ(peer.host().context().state(), verbs::QpState::kError);
  EXPECT_TRUE(peer.Out().empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RequesterBad,
    ::testing::Values(BadRequest{"UnknownOpcode", 200, 0, 4, 2},
                      BadRequest{"AtomicOfFour", ROCEGW_WR_ATOMIC_FETCH_AND_ADD, 0, 4, 1},
                      BadRequest{"AtomicOfSixteen", ROCEGW_WR_ATOMIC_CMP_AND_SWP, 0, 16, 1},
                      BadRequest{"InlineRead", ROCEGW_WR_RDMA_READ, ROCEGW_WQE_INLINE, 4, 2},
                      BadRequest{"InlineLongerThanItsSlot", ROCEGW_WR_SEND, ROCEGW_WQE_INLINE, 129,
                                 1},
                      BadRequest{"TooLong", ROCEGW_WR_SEND, 0, 0x80000001, 1},
                      BadRequest{"BeyondTheRegion", ROCEGW_WR_SEND, 0, 2 << 20, 4},
                      BadRequest{"ReadBeyondTheRegion", ROCEGW_WR_RDMA_READ, 0, 2 << 20, 4}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(RequesterBadKey, ReadIntoReadOnlyMemory_ProtectionError) {
  ScriptedPeer peer;
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = verbs::kAccessRemoteRead;
  region.iova = region.address = QpHost::kBase;
  region.length = 4096;
  ASSERT_TRUE(peer.host().regions().Link(region));
  ASSERT_TRUE(peer.host().rings().PostSend(Wqe(ROCEGW_WR_SEND), {{QpHost::kBase, 16, 0x9999}}));
  EXPECT_EQ(peer.Out().size(), 1u) << "to send from it is fine";
  ASSERT_TRUE(
      peer.host().rings().PostSend(Wqe(ROCEGW_WR_RDMA_READ), {{QpHost::kBase, 16, 0x9999}}));
  EXPECT_TRUE(peer.Out().empty());
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.Poll().back().status, 4);
}

TEST(RequesterBadKey, RegionGoneInTheMiddleOfAMessage_ProtectionErrorInOrder) {
  ScriptedPeer::Options options;
  options.host.cc.window_bytes = 512;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.PostSend(kSource, 2048);
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  peer.Deliver(peer.Ack(kPsn));
  peer.Out();
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[1].status, 4);
}

TEST(RequesterBadKey, PayloadNotAccessible_PacketNeverLeaves_ErrorInOrder) {
  ScriptedPeer peer;
  peer.host().Poison(0x5000, 0x1000);
  peer.PostSend(kSource, 4);
  peer.PostSend(0x4F00, 1000);
  peer.PostSend(kSource, 4);
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].psn(), kPsn);
  EXPECT_EQ(out[1].psn(), kPsn + 1) << "the part that could be read";
  EXPECT_EQ(out[2].psn(), kPsn + 5) << "left before the fault was known";
  EXPECT_TRUE(peer.Poll().empty());
  peer.Deliver(peer.Ack(kPsn));
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 3u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[1].status, 4);
  EXPECT_EQ(cqes[2].status, 5);
  EXPECT_EQ(peer.host().counters().memory_fault_operations.Read(), 3u);
}

TEST(RequesterBadKey, FaultOfARepetitionAfterItsAck_Harmless) {
  ScriptedPeer peer;
  peer.PostRead(0x8000, 8);
  peer.PostSend(kSource, 64);
  EXPECT_EQ(peer.Out().size(), 2u);
  peer.host().Poison(kSource, 64);
  // After the timeout both are sent again, and the SEND's memory is read once more.
  peer.host().Deadline(peer.now() + Milliseconds(50));
  peer.host().Pump(peer.now() + Milliseconds(50));
  ASSERT_EQ(peer.host().queued().size(), 1u);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Ack(kPsn + 1));
  peer.host().Settle();
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[1].status, 0);
}

// Links a region larger than the test's memory, for requests that access none of it.
void LinkLargeRegion(ScriptedPeer& peer) {
  verbs::RegionConfig region;
  region.key = MemoryKey{0x9999};
  region.session = SessionId{1};
  region.pd = 1;
  region.access = 15;
  region.iova = region.address = uint64_t{1} << 40;
  region.length = uint64_t{1} << 32;
  ASSERT_TRUE(peer.host().regions().Link(region));
}

TEST(RequesterLimits, PsnsInDoubtNeverHalfTheSpaceApart) {
  ScriptedPeer peer;
  LinkLargeRegion(peer);
  peer.PostSend(kSource, 4);
  // 2^23 - 1 PSNs: together with the SEND's they would make PSN comparisons ambiguous.
  ASSERT_TRUE(peer.host().rings().PostSend(Wqe(ROCEGW_WR_RDMA_READ),
                                           {{uint64_t{1} << 40, 0x80000000 - 256, 0x9999}}));
  EXPECT_EQ(peer.Out().size(), 1u);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.PollOne().status, 0);
  const auto out = peer.Out();
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out[0].opcode(), Opcode::kRcReadRequest);
}

TEST(RequesterLimits, MessageOfMorePsnsThanHalfTheSpace_LengthError) {
  ScriptedPeer peer;
  LinkLargeRegion(peer);
  ASSERT_TRUE(
      peer.host().rings().PostSend(Wqe(ROCEGW_WR_SEND), {{uint64_t{1} << 40, 0x80000000, 0x9999}}));
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(peer.PollOne().status, 1);
}

}  // namespace
}  // namespace rocegw::testing::requester_send
