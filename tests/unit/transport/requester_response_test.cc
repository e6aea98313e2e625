// SPDX-License-Identifier: Apache-2.0
// Effect of responses on an RC requester: acknowledgements, NAKs, RNR NAKs, READ responses and
// atomic results, including invalid ones.
#include <gtest/gtest.h>

#include "gateway/transport/native/requester.h"
#include "gateway/transport/native/rnr_delay.h"
#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::requester_response {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kPsn = ScriptedPeer::kHostPsn;
constexpr uint64_t kSource = 0x1000;
constexpr uint64_t kInto = 0x8000;

enum Status : uint8_t {
  kSuccess = 0,
  kLocalProtection = 4,
  kFlush = 5,
  kBadResponse = 7,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
};

std::vector<uint32_t> PsnsOf(const std::vector<SentPacket>& out) {
  std::vector<uint32_t> psns;
  for (const SentPacket& packet : out) psns.push_back(packet.psn() - kPsn);
  return psns;
}
using Psns = std::vector<uint32_t>;

std::vector<uint8_t> StatusesOf(const std::vector<rocegw_cqe>& cqes) {
  std::vector<uint8_t> out;
  for (const rocegw_cqe& cqe : cqes) out.push_back(cqe.status);
  return out;
}
using Statuses = std::vector<uint8_t>;

TEST(RequesterAck, Cumulative_RetiresInOrder) {
  ScriptedPeer peer;
  for (int i = 0; i < 3; ++i) peer.PostSend(kSource, 300);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_TRUE(peer.Poll().empty()) << "only half of the first";
  EXPECT_EQ(peer.host().qp().psns().una.value, kPsn + 1);
  peer.Deliver(peer.Ack(kPsn + 3));
  auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].wr_id, 100u);
  EXPECT_EQ(cqes[1].wr_id, 101u);
  EXPECT_EQ(cqes[0].ring_slot, 0u);
  EXPECT_EQ(cqes[1].ring_slot, 1u);
  EXPECT_EQ(peer.host().qp().outstanding(), 1u);
}

TEST(RequesterAck, AnyCreditCode_IsAnAck) {
  for (uint8_t syndrome : {0x00, 0x01, 0x1E, 0x1F}) {
    ScriptedPeer peer;
    peer.PostSend(kSource, 4);
    peer.Out();
    peer.Deliver(peer.Ack(kPsn, syndrome));
    EXPECT_EQ(peer.PollOne().status, kSuccess);
  }
}

TEST(RequesterAck, OfUnsentOrOldPsn_Dropped) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  peer.Poll();
  for (uint32_t psn : {kPsn + 2, kPsn + 500, kPsn, kPsn - 1, kPsn + (1 << 23)}) {
    EXPECT_EQ(peer.Deliver(peer.Ack(psn)), DropReason::k_stale_response) << psn;
    EXPECT_EQ(peer.Deliver(peer.Ack(psn, 0x62)), DropReason::k_stale_response) << psn;
  }
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  EXPECT_EQ(peer.host().qp().psns().una.value, kPsn + 1);
}

TEST(RequesterAck, WithNothingPosted_Dropped) {
  ScriptedPeer peer;
  for (const wire::Headers& headers :
       {peer.Ack(kPsn), peer.Ack(kPsn, 0x60), peer.AtomicAck(kPsn, 1)}) {
    EXPECT_EQ(peer.Deliver(headers), DropReason::k_stale_response);
  }
  EXPECT_EQ(
      peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(4)),
      DropReason::k_stale_response);
}

TEST(RequesterAck, InStatesWithoutRequests_Dropped) {
  for (QpState state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kError}) {
    ScriptedPeer::Options options;
    options.state = state;
    ScriptedPeer peer(options);
    EXPECT_EQ(peer.Deliver(peer.Ack(kPsn)), DropReason::k_qp_state);
  }
}

TEST(RequesterAck, ReservedSyndrome_Malformed) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.Ack(kPsn, 0x40)), DropReason::k_malformed_response);
  EXPECT_EQ(peer.Deliver(peer.Ack(kPsn, 0x65)), DropReason::k_malformed_response);
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
}

TEST(RequesterAck, ReservedSyndromeBehindOthers_AcknowledgesNothing) {
  ScriptedPeer peer;
  for (int i = 0; i < 3; ++i) peer.PostSend(kSource, 4);
  peer.Out();
  for (uint8_t syndrome : {0x40, 0x65, 0x7F})
    EXPECT_EQ(peer.Deliver(peer.Ack(kPsn + 2, syndrome)), DropReason::k_malformed_response);
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().qp().psns().una.value, kPsn);
}

TEST(RequesterNak, Sequence_AcknowledgesBeforeAndResendsFrom) {
  ScriptedPeer peer;
  const auto data = ScriptedPeer::Bytes(256 * 6, 3);
  std::memcpy(&peer.host().memory()[kSource], data.data(), data.size());
  peer.PostSend(kSource, 512);
  peer.PostWrite(kSource, 256 * 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 3, 0x60));
  EXPECT_EQ(peer.PollOne().status, kSuccess) << "the SEND is acknowledged by it";
  const auto out = peer.Out();
  EXPECT_EQ(PsnsOf(out), (Psns{3, 4, 5}));
  EXPECT_EQ(out[0].opcode(), Opcode::kRcWriteMiddle);
  EXPECT_EQ(out[0].payload, std::vector<uint8_t>(data.begin() + 256, data.begin() + 512));
  for (const SentPacket& packet : out) EXPECT_TRUE(packet.headers.bth.ack_request);
  EXPECT_EQ(peer.host().counters().retransmit_packets.Read(), 3u);
  EXPECT_EQ(peer.host().counters().request_tx_packets.Read(), 6u);
  peer.Deliver(peer.Ack(kPsn + 5));
  EXPECT_EQ(peer.PollOne().status, kSuccess);
}

TEST(RequesterNak, SequenceOfTheFirst_ResendsTheWriteHeader) {
  ScriptedPeer peer;
  peer.PostWrite(kSource, 512, 0x7000);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x60));
  const auto out = peer.Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].opcode(), Opcode::kRcWriteFirst);
  EXPECT_EQ(out[0].headers.reth.length, 512u);
}

TEST(RequesterNak, SequenceRepeatedBeforeTheResend_CostsNothing) {
  ScriptedPeer::Options options;
  options.limits.retry_count = 1;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 512);
  peer.Out();
  for (int i = 0; i < 10; ++i) peer.Deliver(peer.Ack(kPsn, 0x60));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  EXPECT_EQ(PsnsOf(peer.Out()), (Psns{0, 1}));
}

TEST(RequesterNak, SequenceWithoutProgress_SpendsTheRetries) {
  for (uint8_t retries : {0, 1, 3, 7}) {
    ScriptedPeer::Options options;
    options.limits.retry_count = retries;
    ScriptedPeer peer(options);
    peer.PostSend(kSource, 4);
    peer.PostSend(kSource, 4);
    peer.Out();
    for (int i = 0; i < retries; ++i) {
      peer.Deliver(peer.Ack(kPsn, 0x60));
      EXPECT_EQ(peer.Out().size(), 2u);
    }
    EXPECT_TRUE(peer.Poll().empty());
    peer.Deliver(peer.Ack(kPsn, 0x60));
    EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{kRetryExceeded, kFlush}));
    EXPECT_EQ(peer.host().context().state(), QpState::kError);
    EXPECT_TRUE(peer.Out().empty());
  }
}

TEST(RequesterNak, Progress_ReloadsTheRetries) {
  ScriptedPeer::Options options;
  options.limits.retry_count = 1;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 256 * 10);
  peer.Out();
  for (uint32_t i = 0; i < 9; ++i) {
    peer.Deliver(peer.Ack(kPsn + i, 0x60));
    EXPECT_EQ(peer.Out().size(), 10 - i);
  }
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
}

struct Fatal {
  uint8_t syndrome;
  uint8_t status;
};
class RequesterFatalNak : public ::testing::TestWithParam<Fatal> {};

TEST_P(RequesterFatalNak, EndsTheRequestOfItsPsn_FlushesTheRestAndTheReceives) {
  ScriptedPeer peer;
  peer.PostReceive(kInto, 64);
  peer.PostSend(kSource, 4);
  peer.PostSend(kSource, 4, 0);
  peer.PostSend(kSource, 4, 0);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 2, GetParam().syndrome));
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 4u);
  EXPECT_EQ(cqes[0].status, kSuccess);
  EXPECT_EQ(cqes[1].status, GetParam().status) << "an error is told, signaled or not";
  EXPECT_EQ(cqes[1].wr_id, 103u);
  EXPECT_EQ(cqes[2].status, kFlush);
  EXPECT_EQ(cqes[2].wr_id, 104u);
  EXPECT_EQ(cqes[3].status, kFlush);
  EXPECT_EQ(cqes[3].wr_id, 100u);
  EXPECT_NE(cqes[3].flags & ROCEGW_CQE_RECEIVE, 0);
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_EQ(peer.host().counters().nak_error_rx_packets.Read(), 1u);
  EXPECT_EQ(peer.host().counters().qp_error_events.Read(), 1u);
  EXPECT_TRUE(peer.Out().empty());
}
INSTANTIATE_TEST_SUITE_P(All, RequesterFatalNak,
                         ::testing::Values(Fatal{0x61, 9}, Fatal{0x62, 10}, Fatal{0x63, 11},
                                           Fatal{0x64, 15}),
                         [](const auto& parameter) {
                           return "syndrome" + std::to_string(parameter.param.syndrome);
                         });

TEST(RequesterFatalNakBehindARead, PlacementPending_TheReadIsWell) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 8);
  peer.PostWrite(kSource, 4);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.host().queued().size(), 1u);
  peer.Deliver(peer.Ack(kPsn + 1, 0x62));
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
  EXPECT_TRUE(peer.Poll().empty()) << "its data is not there yet";
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{kSuccess, 10}));
}

TEST(RequesterRnr, WaitsAndResendsFromIt) {
  ScriptedPeer peer;
  for (int i = 0; i < 3; ++i) peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 1, 0x20 | 14));  // 1.28 ms
  EXPECT_EQ(peer.PollOne().wr_id, 100u);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_TRUE(peer.Advance(Microseconds(1279)).empty());
  EXPECT_EQ(PsnsOf(peer.Advance(Microseconds(1))), (Psns{1, 2}));
  EXPECT_EQ(peer.host().counters().rnr_rx_packets.Read(), 1u);
}

TEST(RequesterRnr, NewRequestsDuringTheWait_WaitToo) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x20 | 14));
  peer.PostSend(kSource, 4);
  EXPECT_TRUE(peer.Out().empty());
  EXPECT_EQ(PsnsOf(peer.Advance(Milliseconds(2))), (Psns{0, 1}));
}

TEST(RequesterRnr, EveryTimerCode_WaitsWhatTheTableSays) {
  const uint32_t hundredths[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                   16,    24,   32,   48,    64,    96,    128,   192,
                                   256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                   4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};
  for (uint8_t code = 0; code < 32; ++code) {
    EXPECT_EQ(transport::RnrDelay(code), Microseconds(int64_t{10} * hundredths[code])) << int{code};
    ScriptedPeer peer;
    peer.PostSend(kSource, 4);
    peer.Out();
    peer.Deliver(peer.Ack(kPsn, 0x20 | code));
    EXPECT_TRUE(peer.Advance(Microseconds(10 * hundredths[code] - 1)).empty()) << int{code};
    EXPECT_EQ(peer.Advance(Microseconds(1)).size(), 1u) << int{code};
  }
}

TEST(RequesterRnr, Retries_CountedThenExceeded) {
  for (uint8_t retries : {0, 1, 6}) {
    ScriptedPeer::Options options;
    options.limits.rnr_retry = retries;
    ScriptedPeer peer(options);
    peer.PostSend(kSource, 4);
    peer.PostSend(kSource, 4);
    peer.Out();
    for (int i = 0; i < retries; ++i) {
      peer.Deliver(peer.Ack(kPsn, 0x21));
      EXPECT_EQ(peer.Advance(Milliseconds(1)).size(), 2u);
    }
    EXPECT_TRUE(peer.Poll().empty());
    peer.Deliver(peer.Ack(kPsn, 0x21));
    EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{kRnrRetryExceeded, kFlush})) << int{retries};
  }
}

TEST(RequesterRnr, Seven_IsWithoutEnd) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.Out();
  for (int i = 0; i < 100; ++i) {
    peer.Deliver(peer.Ack(kPsn, 0x21));
    ASSERT_EQ(peer.Advance(Microseconds(20)).size(), 1u);
  }
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
}

TEST(RequesterRnr, CopyOfTheNak_CostsNothing) {
  ScriptedPeer::Options options;
  options.limits.rnr_retry = 1;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  for (int i = 0; i < 5; ++i) peer.Deliver(peer.Ack(kPsn, 0x21));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  // Packets in flight behind the refused one may have caused sequence NAKs.
  for (int i = 0; i < 10; ++i) peer.Deliver(peer.Ack(kPsn, 0x60));
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  EXPECT_EQ(peer.Advance(Milliseconds(1)).size(), 1u);
}

TEST(RequesterRnr, Progress_ReloadsTheRetries) {
  ScriptedPeer::Options options;
  options.limits.rnr_retry = 1;
  ScriptedPeer peer(options);
  for (int i = 0; i < 10; ++i) peer.PostSend(kSource, 4);
  peer.Out();
  for (uint32_t i = 0; i < 10; ++i) {
    peer.Deliver(peer.Ack(kPsn + i, 0x21));
    peer.Advance(Milliseconds(1));
  }
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  EXPECT_EQ(peer.Poll().size(), 9u);
}

TEST(RequesterRnr, TransportTimerDoesNotRunDuringTheWait) {
  ScriptedPeer::Options options;
  options.limits.timeout = 8;  // 1.05 ms
  options.limits.retry_count = 0;
  ScriptedPeer peer(options);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn, 0x20 | 24));  // 40.96 ms
  EXPECT_EQ(peer.Advance(Microseconds(40960)).size(), 1u);
  EXPECT_EQ(peer.host().context().state(), QpState::kRts);
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_EQ(peer.PollOne().status, kSuccess);
}

TEST(RequesterRead, DataPlaced_CompletesWhenItIsThere) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 600);
  peer.Out();
  const auto data = ScriptedPeer::Bytes(600);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn),
               {data.begin(), data.begin() + 256});
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 1),
               {data.begin() + 256, data.begin() + 512});
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 2),
               {data.begin() + 512, data.end()});
  peer.host().RunMemory(2);
  EXPECT_TRUE(peer.Poll().empty()) << "the last part is not placed yet";
  peer.host().RunMemory(1);
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, 2) << "IBV_WC_RDMA_READ";
  EXPECT_EQ(cqe.byte_length, 600u);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kInto], data.data(), 600), 0);
}

TEST(RequesterRead, IntoSeveralPieces) {
  ScriptedPeer peer;
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_READ;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  peer.host().PostSend(wqe, {{kInto, 100}, {kInto + 0x1000, 200}, {kInto + 0x2000, 100}});
  peer.Out();
  const auto data = ScriptedPeer::Bytes(400);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn),
               {data.begin(), data.begin() + 256});
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 1),
               {data.begin() + 256, data.end()});
  peer.Out();
  EXPECT_EQ(peer.PollOne().status, kSuccess);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kInto], data.data(), 100), 0);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kInto + 0x1000], &data[100], 200), 0);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kInto + 0x2000], &data[300], 100), 0);
}

TEST(RequesterRead, ZeroLength_Completes) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 0);
  EXPECT_EQ(peer.OutOne().headers.reth.length, 0u);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn));
  EXPECT_EQ(peer.PollOne().status, kSuccess);
}

TEST(RequesterRead, ResponseAcknowledgesWhatCameBefore) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.PostRead(kInto, 8);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn + 1), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.PollOne().wr_id, 100u);
  peer.Out();
  EXPECT_EQ(peer.PollOne().wr_id, 101u);
}

TEST(RequesterRead, SendAcknowledgedBehindAPendingPlacement_CompletesAfterIt) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 8);
  peer.PostSend(kSource, 4);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Ack(kPsn + 1));
  EXPECT_TRUE(peer.Poll().empty());
  peer.Out();
  const auto cqes = peer.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].wr_id, 100u);
}

TEST(RequesterRead, AckBeyondIt_IsALossNotAnAnswer) {
  ScriptedPeer peer;
  peer.PostSend(kSource, 4);
  peer.PostRead(kInto, 300);
  peer.PostSend(kSource, 4);
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.Ack(kPsn + 3)), DropReason::kNone);
  EXPECT_EQ(peer.PollOne().wr_id, 100u);
  EXPECT_EQ(PsnsOf(peer.Out()), (Psns{1, 3})) << "asked again from the READ";
  EXPECT_EQ(peer.host().counters().implied_nak_events.Read(), 1u);
}

TEST(RequesterRead, AckInsideOfItsRange_CoversNothingOfIt) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 600);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn + 1));
  EXPECT_TRUE(peer.Poll().empty());
  EXPECT_EQ(peer.host().qp().psns().una.value, kPsn);
}

TEST(RequesterRead, GapInTheResponses_AskedAgainFromTheGap) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 1000, 0x7000);
  peer.Out();
  const auto data = ScriptedPeer::Bytes(1000);
  const auto part = [&](uint32_t i) {
    return std::vector<uint8_t>(data.begin() + i * 256,
                                data.begin() + std::min<uint32_t>(1000, (i + 1) * 256));
  };
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), part(0));
  EXPECT_EQ(peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 2), part(2)),
            DropReason::k_response_gap);
  const SentPacket again = peer.OutOne();
  EXPECT_EQ(again.opcode(), Opcode::kRcReadRequest);
  EXPECT_EQ(again.psn(), kPsn + 1);
  EXPECT_EQ(again.headers.reth.address, 0x7000u + 256);
  EXPECT_EQ(again.headers.reth.length, 744u);
  // The rest of the first response is late and, however often it arrives, says nothing about the
  // repetition. The repetition begins with a Middle packet, as with some responders.
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 3), part(3)),
              DropReason::k_response_gap);
    EXPECT_TRUE(peer.Out().empty());
  }
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 1), part(1));
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 2), part(2));
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 3), part(3));
  peer.Out();
  EXPECT_EQ(peer.PollOne().status, kSuccess);
  EXPECT_EQ(std::memcmp(&peer.host().memory()[kInto], data.data(), 1000), 0);
}

TEST(RequesterRead, GapInTheRepetition_AskedAgainAfterProgress) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 1000, 0x7000);
  peer.Out();
  const auto part = ScriptedPeer::Bytes(256);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 1), part);
  EXPECT_EQ(peer.OutOne().psn(), kPsn);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), part);
  EXPECT_EQ(peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 2), part),
            DropReason::k_response_gap);
  EXPECT_EQ(peer.OutOne().psn(), kPsn + 1);
}

TEST(RequesterRead, RepetitionThatBeginsWithLast_Accepted) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 300);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), ScriptedPeer::Bytes(256));
  peer.Advance(Milliseconds(60));
  EXPECT_EQ(peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseLast, kPsn + 1),
                         ScriptedPeer::Bytes(44)),
            DropReason::kNone);
  peer.Out();
  EXPECT_EQ(peer.PollOne().status, kSuccess);
}

TEST(RequesterRead, PartOfALongOne_AskedAgainWithinItsPiece) {
  ScriptedPeer::Options options;
  options.mtu = 5;
  options.host.cc.window_bytes = 1 << 20;
  ScriptedPeer peer(options);
  peer.PostRead(0x40000, 300000, 0x10000);
  ASSERT_EQ(peer.Out().size(), 3u);
  const auto data = ScriptedPeer::Bytes(4096);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn), data);
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseMiddle, kPsn + 2), data);
  // After a loss, one piece at a time.
  std::vector<SentPacket> again = peer.Out();
  ASSERT_EQ(again.size(), 1u);
  for (uint32_t i = 1; i < 32; ++i) {
    peer.Deliver(peer.ReadResponse(i == 1    ? Opcode::kRcReadResponseFirst
                                   : i == 31 ? Opcode::kRcReadResponseLast
                                             : Opcode::kRcReadResponseMiddle,
                                   kPsn + i),
                 data);
    for (SentPacket& packet : peer.Out()) again.push_back(std::move(packet));
  }
  ASSERT_EQ(again.size(), 3u);
  // A responder answers a repetition only within the original request, so the first piece must end
  // where it ended.
  EXPECT_EQ(again[0].psn(), kPsn + 1);
  EXPECT_EQ(again[0].headers.reth.address, 0x10000u + 4096);
  EXPECT_EQ(again[0].headers.reth.length, transport::kReadChunk - 4096);
  EXPECT_EQ(again[1].psn(), kPsn + 32);
  EXPECT_EQ(again[1].headers.reth.length, transport::kReadChunk);
}

TEST(RequesterRead, DuplicateResponse_Dropped) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 600);
  peer.Out();
  const wire::Headers first = peer.ReadResponse(Opcode::kRcReadResponseFirst, kPsn);
  peer.Deliver(first, ScriptedPeer::Bytes(256));
  EXPECT_EQ(peer.Deliver(first, ScriptedPeer::Bytes(256, 99)), DropReason::k_stale_response);
  peer.Out();
  EXPECT_EQ(peer.host().memory()[kInto], 1);
}

struct WrongResponse {
  const char* name;
  Opcode opcode;
  uint32_t payload;
  uint8_t syndrome;
};
class RequesterWrongResponse : public ::testing::TestWithParam<WrongResponse> {};

// All responses are for a READ of 300 bytes.
TEST_P(RequesterWrongResponse, BadResponse_NothingPlaced) {
  const WrongResponse& wrong = GetParam();
  ScriptedPeer peer;
  peer.PostRead(kInto, 300);
  peer.PostSend(kSource, 4);
  peer.Out();
  wire::Headers headers = peer.ReadResponse(wrong.opcode, kPsn);
  headers.aeth.syndrome = wrong.syndrome;
  EXPECT_EQ(peer.Deliver(headers, ScriptedPeer::Bytes(wrong.payload)),
            DropReason::k_malformed_response);
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{kBadResponse, kFlush}));
  EXPECT_TRUE(peer.host().queued().empty());
  EXPECT_EQ(peer.host().context().state(), QpState::kError);
}
INSTANTIATE_TEST_SUITE_P(
    All, RequesterWrongResponse,
    ::testing::Values(WrongResponse{"Short", Opcode::kRcReadResponseFirst, 252, 0x1F},
                      WrongResponse{"Long", Opcode::kRcReadResponseFirst, 260, 0x1F},
                      WrongResponse{"LastTooEarly", Opcode::kRcReadResponseLast, 44, 0x1F},
                      WrongResponse{"OnlyWithAll", Opcode::kRcReadResponseOnly, 300, 0x1F},
                      WrongResponse{"OnlyEmpty", Opcode::kRcReadResponseOnly, 0, 0x1F},
                      WrongResponse{"WithNak", Opcode::kRcReadResponseFirst, 256, 0x62},
                      WrongResponse{"AtomicAck", Opcode::kRcAtomicAck, 0, 0x1F}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(RequesterRead, TargetGone_ProtectionError) {
  ScriptedPeer peer;
  peer.PostRead(kInto, 8);
  peer.Out();
  peer.host().regions().Unlink(MemoryKey{peer.host().key()});
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  EXPECT_EQ(peer.PollOne().status, kLocalProtection);
}

TEST(RequesterRead, TargetNotAccessible_ProtectionError) {
  ScriptedPeer peer;
  peer.host().Poison(kInto, 8);
  peer.PostRead(kInto, 8);
  peer.PostSend(kSource, 8);
  peer.Out();
  peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8));
  peer.Deliver(peer.Ack(kPsn + 1));
  peer.Out();
  EXPECT_EQ(StatusesOf(peer.Poll()), (Statuses{kLocalProtection, kFlush}));
}

TEST(RequesterAtomic, Result_PlacedInHostOrder) {
  ScriptedPeer peer;
  peer.PostFetchAdd(kInto, 5);
  peer.Out();
  peer.Deliver(peer.AtomicAck(kPsn, 0x0102030405060708));
  EXPECT_TRUE(peer.Poll().empty());
  peer.Out();
  const rocegw_cqe cqe = peer.PollOne();
  EXPECT_EQ(cqe.status, kSuccess);
  EXPECT_EQ(cqe.opcode, 4) << "IBV_WC_FETCH_ADD";
  EXPECT_EQ(cqe.byte_length, 8u);
  uint64_t value;
  std::memcpy(&value, &peer.host().memory()[kInto], 8);
  EXPECT_EQ(value, 0x0102030405060708u);
}

TEST(RequesterAtomic, CompareSwap_ItsOwnOpcode) {
  ScriptedPeer peer;
  peer.PostCompareSwap(kInto, 1, 2);
  peer.Out();
  peer.Deliver(peer.AtomicAck(kPsn, 9));
  peer.Out();
  EXPECT_EQ(peer.PollOne().opcode, 3) << "IBV_WC_COMP_SWAP";
}

TEST(RequesterAtomic, AnsweredByReadData_BadResponse) {
  ScriptedPeer peer;
  peer.PostFetchAdd(kInto, 5);
  peer.Out();
  EXPECT_EQ(
      peer.Deliver(peer.ReadResponse(Opcode::kRcReadResponseOnly, kPsn), ScriptedPeer::Bytes(8)),
      DropReason::k_malformed_response);
  EXPECT_EQ(peer.PollOne().status, kBadResponse);
}

TEST(RequesterAtomic, AnsweredByAnAck_AskedAgain) {
  ScriptedPeer peer;
  peer.PostFetchAdd(kInto, 5);
  peer.Out();
  peer.Deliver(peer.Ack(kPsn));
  EXPECT_TRUE(peer.Poll().empty());
  const SentPacket again = peer.OutOne();
  EXPECT_EQ(again.opcode(), Opcode::kRcFetchAdd);
  EXPECT_EQ(again.psn(), kPsn);
  EXPECT_EQ(again.headers.atomic.swap_or_add, 5u);
}

TEST(RequesterAtomic, ResultOfALaterOne_AskedAgainFromTheFirst) {
  ScriptedPeer peer;
  peer.PostFetchAdd(kInto, 5);
  peer.PostFetchAdd(kInto + 8, 6);
  peer.Out();
  EXPECT_EQ(peer.Deliver(peer.AtomicAck(kPsn + 1, 1)), DropReason::k_response_gap);
  EXPECT_EQ(PsnsOf(peer.Out()), (Psns{0, 1}));
}

TEST(RequesterAtomic, NakInItsAnswer_BadResponse) {
  ScriptedPeer peer;
  peer.PostFetchAdd(kInto, 5);
  peer.Out();
  wire::Headers headers = peer.AtomicAck(kPsn, 1);
  headers.aeth.syndrome = 0x62;
  EXPECT_EQ(peer.Deliver(headers), DropReason::k_malformed_response);
  EXPECT_EQ(peer.PollOne().status, kBadResponse);
}

}  // namespace
}  // namespace rocegw::testing::requester_response
