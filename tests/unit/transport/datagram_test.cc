// SPDX-License-Identifier: Apache-2.0
// Unreliable datagrams: what a send needs, the 40 bytes before a received one, and which packets
// are dropped.
#include <gtest/gtest.h>

#include <cstring>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/qp/qp_host.h"
#include "tests/support/qp/scripted_peer.h"

namespace rocegw::testing::datagram {
namespace {

using metrics::DropReason;
using verbs::QpState;
using wire::Opcode;

constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kPeerQpn = 0x77;
constexpr uint64_t kBuffer = 0x1000;
const wire::Gid kPeer4 = wire::Gid::FromV4(0xC0000202);
const wire::Gid kOwn4 = wire::Gid::FromV4(0xC0000201);

wire::Gid V6(uint8_t last) {
  wire::Gid gid;
  gid.bytes[0] = 0xFD;
  gid.bytes[15] = last;
  return gid;
}

verbs::GidTable MakeGids() {
  verbs::GidTable table;
  table.entries[1] = kOwn4;
  table.entries[3] = V6(1);
  return table;
}

class Datagram : public ::testing::Test {
 protected:
  explicit Datagram(uint32_t rq_stride = 0, uint32_t cq_entries = 1024, bool picky = false)
      : gids_(MakeGids()), host(Make(rq_stride, cq_entries, picky)) {
    verbs::QpAttributes want;
    want.qkey = kQkey;
    want.sq_psn = Psn(0xFFFFFF);
    want.state = QpState::kInit;
    EXPECT_EQ(
        host.Modify(verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey,
                    want),
        0);
    want.state = QpState::kRtr;
    EXPECT_EQ(host.Modify(verbs::kAttrState, want), 0);
    want.state = QpState::kRts;
    EXPECT_EQ(host.Modify(verbs::kAttrState | verbs::kAttrSqPsn, want), 0);
  }

  QpHost::Options Make(uint32_t rq_stride, uint32_t cq_entries, bool picky) {
    QpHost::Options options;
    options.cq_entries = cq_entries;
    options.type = verbs::QpType::kUd;
    options.gids = &gids_;
    if (picky) options.peers = &rules_;
    options.port_mtu = 3;
    options.payload_stride = 64;
    options.rq_payload_stride = rq_stride;
    return options;
  }

  rocegw_send_wqe Wqe(uint64_t id = 1, uint16_t flags = ROCEGW_WQE_SIGNALED) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = id;
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = flags;
    std::memcpy(wqe.u.ud.av.dgid, kPeer4.bytes.data(), 16);
    wqe.u.ud.av.sgid_index = 1;
    wqe.u.ud.av.traffic_class = 0x68;
    wqe.u.ud.av.hop_limit = 17;
    wqe.u.ud.remote_qpn = kPeerQpn;
    wqe.u.ud.remote_qkey = kQkey;
    return wqe;
  }

  // Returns the decoded packets that the queue pair sent; payloads and headers are valid until the
  // next call.
  std::vector<wire::RxPacket> Out() {
    host.Pump(now);
    host.Settle();
    kept_.swap(host.sent);
    host.sent.clear();
    std::vector<wire::RxPacket> out(kept_.size());
    for (size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(wire::Decode({kept_[i].meta, kept_[i].bytes}, out[i]), DropReason::kNone);
    }
    return out;
  }

  WirePacket Build(size_t length, const wire::Gid& from, const wire::Gid& to,
                   Opcode opcode = Opcode::kUdSendOnly, uint32_t qkey = kQkey) {
    wire::Headers headers;
    headers.bth.opcode = opcode;
    headers.bth.dest_qpn = Qpn{0x11};
    headers.bth.psn = Psn(99);
    headers.bth.pad_count = static_cast<uint8_t>(-length & 3);
    headers.bth.solicited = true;
    headers.deth = {qkey, Qpn{kPeerQpn}};
    headers.immediate = 0x55667788;
    WirePacket packet;
    packet.meta.source = from;
    packet.meta.destination = to;
    packet.meta.source_port = 0xC123;
    packet.meta.traffic_class = 0x6A;
    packet.meta.hop_limit = 63;
    packet.meta.ip_id_known = true;
    packet.meta.ip_id = 0x1234;
    packet.bytes.resize(wire::kMaxHeaderLength);
    packet.bytes.resize(wire::EncodeHeaders(headers, packet.bytes.data()));
    const auto payload = ScriptedPeer::Bytes(length);
    packet.bytes.insert(packet.bytes.end(), payload.begin(), payload.end());
    packet.bytes.resize(packet.bytes.size() + headers.bth.pad_count + 4);
    wire::Path path;
    path.source = from;
    path.destination = to;
    path.source_port = 0xC123;
    wire::SealIcrc(path, 0x1234, packet.bytes.data(), packet.bytes.size() - 4);
    return packet;
  }
  DropReason Receive(size_t length, uint32_t qkey = kQkey) {
    host.Deliver(Build(length, kPeer4, kOwn4, Opcode::kUdSendOnly, qkey), now);
    return host.last_drop;
  }
  rocegw_cqe PollOne() {
    const auto cqes = host.Poll();
    EXPECT_EQ(cqes.size(), 1u);
    return cqes.empty() ? rocegw_cqe{} : cqes[0];
  }

  // Allows only 192.0.2.128 to 192.0.2.255.
  verbs::PeerRules rules_{{}, {{wire::Gid::FromV4(0xC0000280), 96 + 25}}};
  verbs::GidTable gids_;
  wire::Gid behind_gids_ = kOwn4;  // an access beyond the table would find it
  QpHost host;
  TimePoint now{1000};
  std::deque<WirePacket> kept_;
};

class DatagramInRing : public Datagram {
 protected:
  DatagramInRing() : Datagram(128) {}
};

class PickyDatagram : public Datagram {
 protected:
  PickyDatagram() : Datagram(0, 1024, true) {}
};

TEST_F(Datagram, Send_HeadersAndPath) {
  const auto data = ScriptedPeer::Bytes(33);
  std::memcpy(&host.memory()[kBuffer], data.data(), 33);
  host.PostSend(Wqe(), {{kBuffer, 20}, {kBuffer + 20, 13}});
  rocegw_send_wqe second = Wqe(2);
  second.opcode = ROCEGW_WR_SEND_WITH_IMM;
  second.imm_or_rkey = 0xA0B0C0D0;
  second.u.ud.av.hop_limit = 0;
  host.PostSend(second, {{kBuffer, 0}});
  const auto out = Out();
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].headers.bth.opcode, Opcode::kUdSendOnly);
  EXPECT_EQ(out[0].headers.bth.dest_qpn.value, kPeerQpn);
  EXPECT_EQ(out[0].headers.bth.psn.value, 0xFFFFFFu);
  EXPECT_EQ(out[1].headers.bth.psn.value, 0u);
  EXPECT_FALSE(out[0].headers.bth.ack_request);
  EXPECT_EQ(out[0].headers.deth.qkey, kQkey);
  EXPECT_EQ(out[0].headers.deth.source_qpn.value, 0x11u);
  EXPECT_EQ(std::vector<uint8_t>(out[0].payload.begin(), out[0].payload.end()), data);
  EXPECT_EQ(out[0].meta.destination, kPeer4);
  EXPECT_EQ(out[0].meta.source, kOwn4);
  EXPECT_EQ(out[0].meta.traffic_class, 0x68);
  EXPECT_EQ(out[0].meta.hop_limit, 17);
  EXPECT_EQ(out[1].meta.hop_limit, 64) << "0 means the default";
  EXPECT_EQ(out[1].headers.bth.opcode, Opcode::kUdSendOnlyImm);
  EXPECT_EQ(out[1].headers.immediate, 0xA0B0C0D0u);
  EXPECT_EQ(out[0].meta.source_port, out[1].meta.source_port);
  const auto cqes = host.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[0].opcode, 0);
}

TEST_F(Datagram, Send_CompletesOnlyWhenItsMemoryWasRead) {
  host.PostSend(Wqe(), {{kBuffer, 100}});
  host.Pump(now);
  EXPECT_TRUE(host.Poll().empty());
  EXPECT_EQ(host.context().sq().released(), 0u);
  host.Settle();
  EXPECT_EQ(PollOne().status, 0);
  EXPECT_EQ(host.context().sq().released(), 1u);
}

TEST_F(Datagram, SendInline_KeysNotLookedAt_Unsignaled) {
  const auto data = ScriptedPeer::Bytes(64);
  ASSERT_TRUE(host.rings().PostSend(Wqe(1, ROCEGW_WQE_INLINE), {{0, 64, 0xBAD}}, &data));
  const auto out = Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::vector<uint8_t>(out[0].payload.begin(), out[0].payload.end()), data);
  EXPECT_TRUE(host.Poll().empty());
  EXPECT_EQ(host.context().sends_completed(), 1u);
}

TEST_F(Datagram, QkeyWithTopBit_StandsForTheQueuePairsOwn) {
  rocegw_send_wqe wqe = Wqe();
  wqe.u.ud.remote_qkey = 0x80000000;
  host.PostSend(wqe, {{kBuffer, 4}});
  EXPECT_EQ(Out().at(0).headers.deth.qkey, kQkey);
  wqe.u.ud.remote_qkey = 0x7FFFFFFF;
  host.PostSend(wqe, {{kBuffer, 4}});
  EXPECT_EQ(Out().at(0).headers.deth.qkey, 0x7FFFFFFFu);
}

TEST_F(Datagram, SendOverIpv6) {
  rocegw_send_wqe wqe = Wqe();
  std::memcpy(wqe.u.ud.av.dgid, V6(9).bytes.data(), 16);
  wqe.u.ud.av.sgid_index = 3;
  host.PostSend(wqe, {{kBuffer, 4}});
  const auto out = Out();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].meta.source, V6(1));
  EXPECT_EQ(out[0].meta.destination, V6(9));
}

TEST_F(Datagram, SendOfTheWholeMtu_OneMoreIsALengthError) {
  host.PostSend(Wqe(), {{kBuffer, 1024}});
  EXPECT_EQ(Out().size(), 1u);
  EXPECT_EQ(PollOne().status, 0);
  host.PostSend(Wqe(), {{kBuffer, 1025}});
  EXPECT_TRUE(Out().empty());
  EXPECT_EQ(PollOne().status, 1) << "IBV_WC_LOC_LEN_ERR";
  EXPECT_EQ(host.context().state(), QpState::kError);
  EXPECT_EQ(host.counters().qp_error_events.Read(), 1u);
}

struct BadVector {
  uint8_t sgid_index;
  bool v6;
};
class DatagramVector : public Datagram, public ::testing::WithParamInterface<BadVector> {};

TEST_P(DatagramVector, NoSourceOrAnotherFamily_OperationError) {
  rocegw_send_wqe wqe = Wqe();
  wqe.u.ud.av.sgid_index = GetParam().sgid_index;
  if (GetParam().v6) std::memcpy(wqe.u.ud.av.dgid, V6(9).bytes.data(), 16);
  host.PostSend(wqe, {{kBuffer, 4}});
  EXPECT_TRUE(Out().empty());
  EXPECT_EQ(PollOne().status, 2) << "IBV_WC_LOC_QP_OP_ERR";
}
INSTANTIATE_TEST_SUITE_P(All, DatagramVector,
                         ::testing::Values(BadVector{0, false}, BadVector{64, false},
                                           BadVector{255, false}, BadVector{3, false},
                                           BadVector{1, true}),
                         [](const auto& parameter) {
                           return "sgid" + std::to_string(parameter.param.sgid_index) +
                                  (parameter.param.v6 ? "_v6" : "_v4");
                         });

TEST_F(Datagram, BadSendKey_ProtectionErrorBehindEarlierOnes) {
  host.PostSend(Wqe(1), {{kBuffer, 100}});
  ASSERT_TRUE(host.rings().PostSend(Wqe(2), {{QpHost::kBase, 4, 0xBAD}}));
  host.PostSend(Wqe(3), {{kBuffer, 4}});
  host.Pump(now);
  EXPECT_TRUE(host.Poll().empty());
  host.Settle();
  const auto cqes = host.Poll();
  ASSERT_EQ(cqes.size(), 3u);
  EXPECT_EQ(cqes[0].status, 0);
  EXPECT_EQ(cqes[1].status, 4);
  EXPECT_EQ(cqes[2].status, 5);
  EXPECT_EQ(cqes[2].wr_id, 3u);
}

TEST_F(Datagram, RdmaOpcode_OperationError) {
  for (uint8_t opcode :
       {ROCEGW_WR_RDMA_WRITE, ROCEGW_WR_RDMA_READ, ROCEGW_WR_ATOMIC_FETCH_AND_ADD}) {
    rocegw_send_wqe wqe = Wqe();
    wqe.opcode = opcode;
    host.PostSend(wqe, {{kBuffer, 8}});
    EXPECT_TRUE(Out().empty());
    const auto cqes = host.Poll();
    ASSERT_EQ(cqes.size(), 1u);
    EXPECT_EQ(cqes[0].status, opcode == ROCEGW_WR_RDMA_WRITE ? 2 : 5);
  }
}

TEST_F(Datagram, SendMemoryNotAccessible_PacketNeverLeaves) {
  host.Poison(kBuffer, 100);
  host.PostSend(Wqe(1, 0), {{kBuffer, 100}});
  EXPECT_TRUE(Out().empty());
  EXPECT_EQ(PollOne().status, 4);
  EXPECT_EQ(host.context().state(), QpState::kError);
}

TEST_F(Datagram, PortDry_HeldAndSentLater) {
  host.port_budget = 0;
  host.PostSend(Wqe(7), {{kBuffer, 4}});
  EXPECT_TRUE(Out().empty());
  EXPECT_TRUE(host.Poll().empty());
  host.port_budget = 10;
  EXPECT_EQ(Out().size(), 1u);
  EXPECT_EQ(PollOne().wr_id, 7u);
}

TEST_F(Datagram, PortDryThenError_HeldOneIsFlushed) {
  host.port_budget = 0;
  host.PostSend(Wqe(7), {{kBuffer, 4}});
  host.PostSend(Wqe(8), {{kBuffer, 4}});
  Out();
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  const auto cqes = host.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].wr_id, 7u);
  EXPECT_EQ(cqes[0].status, 5);
  EXPECT_EQ(cqes[1].wr_id, 8u);
}

TEST_F(Datagram, PortDryThenReset_HeldOneIsForgotten) {
  host.port_budget = 0;
  host.PostSend(Wqe(7), {{kBuffer, 4}});
  Out();
  ASSERT_EQ(host.ToState(QpState::kReset), 0);
  host.port_budget = 10;
  verbs::QpAttributes want;
  want.qkey = kQkey;
  want.state = QpState::kInit;
  ASSERT_EQ(
      host.Modify(verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey,
                  want),
      0);
  want.state = QpState::kRtr;
  ASSERT_EQ(host.Modify(verbs::kAttrState, want), 0);
  want.state = QpState::kRts;
  ASSERT_EQ(host.Modify(verbs::kAttrState | verbs::kAttrSqPsn, want), 0);
  EXPECT_TRUE(Out().empty());
  EXPECT_TRUE(host.Poll().empty());
}

TEST_F(Datagram, Receive_Ipv4HeaderInTheLastTwentyBytes) {
  host.PostReceive(5, {{kBuffer, 40}, {kBuffer + 0x1000, 100}});
  EXPECT_EQ(Receive(33), DropReason::kNone);
  host.Settle();
  const rocegw_cqe cqe = PollOne();
  EXPECT_EQ(cqe.status, 0);
  EXPECT_EQ(cqe.wr_id, 5u);
  EXPECT_EQ(cqe.opcode, 128);
  EXPECT_EQ(cqe.byte_length, 73u);
  EXPECT_EQ(cqe.source_qpn, kPeerQpn);
  EXPECT_EQ(cqe.flags,
            ROCEGW_CQE_RECEIVE | ROCEGW_CQE_GRH | ROCEGW_CQE_IPV4 | ROCEGW_CQE_SOLICITED);
  const uint8_t* grh = &host.memory()[kBuffer];
  for (int i = 0; i < 20; ++i) EXPECT_EQ(grh[i], 0);
  const uint8_t expected[20] = {0x45, 0x6A, 0,   88, 0x12, 0x34, 0x40, 0, 63, 17,
                                0,    0,    192, 0,  2,    2,    192,  0, 2,  1};
  for (int i = 0; i < 20; ++i) {
    if (i == 10 || i == 11) continue;
    EXPECT_EQ(grh[20 + i], expected[i]) << i;
  }
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<uint32_t>(grh[20 + i] << 8 | grh[21 + i]);
  while ((sum >> 16) != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  EXPECT_EQ(sum, 0xFFFFu) << "the checksum of an IPv4 header";
  EXPECT_EQ(std::memcmp(&host.memory()[kBuffer + 0x1000], ScriptedPeer::Bytes(33).data(), 33), 0);
}

TEST_F(Datagram, Receive_Ipv6HeaderWhole) {
  host.PostReceive(5, {{kBuffer, 200}});
  host.Deliver(Build(8, V6(9), V6(1), Opcode::kUdSendOnlyImm), now);
  host.Settle();
  const rocegw_cqe cqe = PollOne();
  EXPECT_EQ(cqe.imm_or_rkey, 0x55667788u);
  EXPECT_NE(cqe.flags & ROCEGW_CQE_WITH_IMM, 0);
  EXPECT_EQ(cqe.flags & ROCEGW_CQE_IPV4, 0);
  const uint8_t* grh = &host.memory()[kBuffer];
  EXPECT_EQ(grh[0], 0x66);
  EXPECT_EQ(grh[1], 0xA0);
  EXPECT_EQ(grh[4] << 8 | grh[5], 8 + 12 + 8 + 4 + 8 + 4) << "UDP, BTH, DETH, ImmDt, payload, ICRC";
  EXPECT_EQ(grh[6], 17);
  EXPECT_EQ(grh[7], 63);
  EXPECT_EQ(std::memcmp(grh + 8, V6(9).bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(grh + 24, V6(1).bytes.data(), 16), 0);
}

TEST_F(DatagramInRing, ReceiveThatFitsTheSlot_TravelsInTheRing) {
  for (uint64_t id : {1, 2, 3}) host.PostReceive(id, {{kBuffer, 300}});
  EXPECT_EQ(Receive(88), DropReason::kNone);
  EXPECT_TRUE(host.queued().empty());
  const rocegw_cqe cqe = PollOne();
  EXPECT_NE(cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
  EXPECT_EQ(host.rings().rq_payload(0)[20], 0x45);
  EXPECT_EQ(std::memcmp(host.rings().rq_payload(0) + 40, ScriptedPeer::Bytes(88).data(), 88), 0);
  EXPECT_EQ(Receive(89), DropReason::kNone);
  EXPECT_EQ(host.queued().size(), 2u) << "header and payload are placed";
  EXPECT_TRUE(host.Poll().empty());
  host.Settle();
  EXPECT_EQ(PollOne().flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
}

TEST_F(Datagram, TwoPlacedBeforeMemoryRuns_EachItsOwnHeader) {
  host.PostReceive(1, {{kBuffer, 200}});
  host.PostReceive(2, {{kBuffer + 0x1000, 200}});
  Receive(4);
  host.Deliver(Build(4, V6(9), V6(1)), now);
  host.Settle();
  EXPECT_EQ(host.memory()[kBuffer + 20], 0x45);
  EXPECT_EQ(host.memory()[kBuffer + 0x1000], 0x66);
}

TEST_F(Datagram, WrongQkey_Dropped) {
  host.PostReceive(5, {{kBuffer, 200}});
  EXPECT_EQ(Receive(4, kQkey + 1), DropReason::k_wrong_qkey);
  EXPECT_TRUE(host.Poll().empty());
  EXPECT_EQ(host.context().rq().fetched(), 0u);
}

TEST_F(PickyDatagram, PeerNotAllowed_NothingGoesThereAndNothingComesFromThere) {
  host.PostReceive(5, {{kBuffer, 200}});
  EXPECT_EQ(Receive(4), DropReason::k_peer_not_allowed);
  EXPECT_EQ(host.context().rq().fetched(), 0u);
  rules_.pool.clear();
  EXPECT_EQ(Receive(4), DropReason::kNone);
  host.Settle();
  PollOne();
  rules_.tenant = {{wire::Gid::FromV4(0xC0000300), 96 + 24}};
  host.PostSend(Wqe(), {{kBuffer, 8}});
  EXPECT_TRUE(Out().empty());
  EXPECT_EQ(PollOne().status, static_cast<uint8_t>(verbs::WcStatus::kLocalQpOperation));
}

TEST_F(Datagram, NoReceive_Dropped) {
  EXPECT_EQ(Receive(4), DropReason::k_ud_no_receive);
  host.PostReceive(5, {{kBuffer, 200}});
  EXPECT_EQ(Receive(4), DropReason::kNone);
}

TEST_F(Datagram, LongerThanTheReceive_DroppedAndTheReceiveKept) {
  host.PostReceive(5, {{kBuffer, 139}});
  EXPECT_EQ(Receive(100), DropReason::k_ud_too_long);
  EXPECT_TRUE(host.Poll().empty());
  EXPECT_EQ(Receive(99), DropReason::kNone);
  host.Settle();
  EXPECT_EQ(PollOne().byte_length, 139u);
}

TEST_F(Datagram, ReceiveWithABadKey_ProtectionErrorAndErrorState) {
  ASSERT_TRUE(host.rings().PostReceive(5, {{1, 200, 0xBAD}}));
  host.PostReceive(6, {{kBuffer, 200}});
  EXPECT_EQ(Receive(4), DropReason::k_operation_error);
  const auto cqes = host.Poll();
  ASSERT_EQ(cqes.size(), 2u);
  EXPECT_EQ(cqes[0].status, 4);
  EXPECT_EQ(cqes[1].status, 5);
  EXPECT_EQ(host.context().state(), QpState::kError);
}

TEST_F(Datagram, ReceiveMemoryNotAccessible_ProtectionError) {
  host.Poison(kBuffer + 40, 4);
  host.PostReceive(5, {{kBuffer, 200}});
  EXPECT_EQ(Receive(4), DropReason::kNone);
  host.Settle();
  EXPECT_EQ(PollOne().status, 4);
  EXPECT_EQ(host.context().state(), QpState::kError);
}

TEST_F(Datagram, FaultAfterReset_ChangesNothing) {
  host.Poison(kBuffer, 1000);
  host.PostReceive(5, {{kBuffer, 200}});
  Receive(4);
  host.PostSend(Wqe(), {{kBuffer, 4}});
  host.Pump(now);
  ASSERT_EQ(host.ToState(QpState::kReset), 0);
  host.Settle();
  EXPECT_EQ(host.context().state(), QpState::kReset);
  EXPECT_TRUE(host.Poll().empty());
}

TEST_F(Datagram, RcPacket_WrongService) {
  host.PostReceive(5, {{kBuffer, 200}});
  host.Deliver(Build(4, kPeer4, kOwn4, Opcode::kRcSendOnly), now);
  EXPECT_EQ(host.last_drop, DropReason::k_wrong_service);
}

TEST_F(Datagram, StatesWithoutReceive_Dropped) {
  host.PostReceive(5, {{kBuffer, 200}});
  ASSERT_EQ(host.ToState(QpState::kSqd), 0);
  EXPECT_EQ(Receive(4), DropReason::kNone);
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_EQ(Receive(4), DropReason::k_qp_state);
  ASSERT_EQ(host.ToState(QpState::kReset), 0);
  EXPECT_EQ(Receive(4), DropReason::k_qp_state);
}

TEST_F(Datagram, ImpossibleIndices_ClientFault) {
  host.rings().control().sq_producer = 1000;
  host.rings().control().rq_producer = 1000;
  Receive(4);
  Out();
  EXPECT_EQ(host.faults.size(), 2u);
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_TRUE(host.Poll().empty());
}

TEST_F(Datagram, Flush_EverythingInOrder) {
  host.PostReceive(5, {{kBuffer, 200}});
  Receive(4);
  host.PostReceive(6, {{kBuffer, 200}});
  host.PostSend(Wqe(1), {{kBuffer, 4}});
  host.Pump(now);
  host.PostSend(Wqe(2), {{kBuffer, 4}});
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_TRUE(host.Poll().empty()) << "memory is still being used";
  host.Settle();
  const auto cqes = host.Poll();
  ASSERT_EQ(cqes.size(), 4u);
  std::vector<std::pair<uint64_t, uint8_t>> sends, receives;
  for (const rocegw_cqe& cqe : cqes) {
    ((cqe.flags & ROCEGW_CQE_RECEIVE) != 0 ? receives : sends).emplace_back(cqe.wr_id, cqe.status);
  }
  EXPECT_EQ(sends, (std::vector<std::pair<uint64_t, uint8_t>>{{1, 0}, {2, 5}}));
  EXPECT_EQ(receives, (std::vector<std::pair<uint64_t, uint8_t>>{{5, 0}, {6, 5}}));
}

class DatagramSmallCq : public Datagram {
 protected:
  DatagramSmallCq() : Datagram(0, 2) {}
};

TEST_F(DatagramSmallCq, Overrun_ErrorStateAndCqEventOnce) {
  for (uint64_t id = 0; id < 4; ++id) host.PostSend(Wqe(id), {{kBuffer, 4}});
  Out();
  EXPECT_EQ(host.context().state(), QpState::kError);
  EXPECT_EQ(host.Poll().size(), 2u);
  ASSERT_EQ(host.events.size(), 1u);
  EXPECT_EQ(host.events[0], verbs::AsyncEvent::kCqError);
}

}  // namespace
}  // namespace rocegw::testing::datagram
