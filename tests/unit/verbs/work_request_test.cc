// SPDX-License-Identifier: Apache-2.0
// Parsing of requests from a client's ring, valid and invalid ones, and iteration over their SGE
// lists.
#include "gateway/verbs/work_request.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "tests/support/random.h"

namespace rocegw::verbs {
namespace {

constexpr uint32_t kEntries = 8;
constexpr uint32_t kMostSges = 4;
constexpr uint32_t kPayloadStride = 128;

class WorkRequest : public ::testing::Test {
 protected:
  WorkRequest() : slot(rocegw_sq_stride(kMostSges)), payload(kEntries * kPayloadStride) {
    config.type = QpType::kRc;
    config.session = SessionId{3};
    config.pd = 5;
    config.sq_entries = config.rq_entries = kEntries;
    config.max_send_sge = config.max_recv_sge = kMostSges;
    config.sq_payload_stride = kPayloadStride;
    config.sq_payload = payload.data();
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.wr_id = 77;
  }
  WcStatus Send(uint32_t index = 3) {
    std::memcpy(slot.data(), &wqe, sizeof wqe);
    for (size_t i = 0; i < list.size() && i < kMostSges; ++i) {
      std::memcpy(slot.data() + sizeof wqe + i * sizeof list[i], &list[i], sizeof list[i]);
    }
    const WcStatus status = config.type == QpType::kUd
                                ? ParseDatagram(config, config, slot.data(), index, request, sges)
                                : ParseSend(config, config, slot.data(), index, request, sges);
    EXPECT_EQ(request.wr_id, 77u);
    EXPECT_EQ(request.ring_slot, index);
    return status;
  }
  WcStatus SendOf(std::vector<rocegw_sge> of) {
    list = std::move(of);
    wqe.num_sge = static_cast<uint8_t>(list.size());
    return Send();
  }

  QpConfig config;
  std::vector<uint8_t> slot;
  std::vector<uint8_t> payload;
  rocegw_send_wqe wqe{};
  std::vector<rocegw_sge> list;
  DatagramRequest request;
  std::array<rocegw_sge, kMostSges> sges{};
};

TEST_F(WorkRequest, Send_LengthIsTheSumOfItsList) {
  EXPECT_EQ(SendOf({{0x1000, 10, 1}, {0x2000, 0, 2}, {0x3000, 32, 3}}), WcStatus::kSuccess);
  EXPECT_EQ(request.length, 42u);
  EXPECT_EQ(request.sge_count, 3u);
  EXPECT_EQ(sges[2].address, 0x3000u);
  EXPECT_EQ(request.ring_payload, nullptr);
  EXPECT_TRUE(request.is_send());
  EXPECT_EQ(SendOf({{0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}}), WcStatus::kSuccess);
  EXPECT_EQ(request.length, 10u);
  EXPECT_EQ(request.sge_count, kMostSges);
}

TEST_F(WorkRequest, EmptyList_IsAnEmptyMessage) {
  EXPECT_EQ(SendOf({}), WcStatus::kSuccess);
  EXPECT_EQ(request.length, 0u);
}

TEST_F(WorkRequest, MoreElementsThanTheQueueHas_OperationError) {
  wqe.num_sge = kMostSges;
  EXPECT_EQ(Send(), WcStatus::kSuccess);
  wqe.num_sge = kMostSges + 1;
  EXPECT_EQ(Send(), WcStatus::kLocalQpOperation);
  wqe.num_sge = 255;
  EXPECT_EQ(Send(), WcStatus::kLocalQpOperation);
  // The size of the caller's array is a limit as well.
  config.max_send_sge = 255;
  EXPECT_EQ(Send(), WcStatus::kLocalQpOperation);
}

TEST_F(WorkRequest, LongestMessage_TwoGigabytesAndNotAByteMore) {
  EXPECT_EQ(SendOf({{0, 0x40000000, 1}, {0, 0x40000000, 1}}), WcStatus::kSuccess);
  EXPECT_EQ(request.length, 0x80000000u);
  EXPECT_EQ(SendOf({{0, 0x40000000, 1}, {0, 0x40000001, 1}}), WcStatus::kLocalLength);
  // A sum that wraps around in 32 bits.
  EXPECT_EQ(SendOf({{0, 0x80000000, 1}, {0, 0x80000000, 1}, {0, 8, 1}}), WcStatus::kLocalLength);
}

TEST_F(WorkRequest, PlacementExtensions_OfRcThatHasThem) {
  const auto parsed = [this](uint8_t opcode, const std::vector<rocegw_sge>& pieces) {
    wqe.opcode = opcode;
    wqe.u.rdma.compare_add = 4096;
    wqe.u.rdma.swap = wire::kFlushGlobal;
    return SendOf(pieces);
  };
  EXPECT_EQ(parsed(ROCEGW_WR_FLUSH, {}), WcStatus::kLocalQpOperation);
  EXPECT_EQ(parsed(ROCEGW_WR_ATOMIC_WRITE, {{0, 8, 1}}), WcStatus::kLocalQpOperation);
  config.placement = true;
  EXPECT_EQ(parsed(ROCEGW_WR_FLUSH, {}), WcStatus::kSuccess);
  EXPECT_EQ(request.length, 0u);
  EXPECT_EQ(request.remote_length(), 4096u);
  EXPECT_EQ(request.feth(), wire::kFlushGlobal);
  EXPECT_TRUE(request.has_own_answer());
  EXPECT_EQ(request.order(), wire::MessageOrder::kAfterAll);
  EXPECT_EQ(parsed(ROCEGW_WR_FLUSH, {{0, 8, 1}}), WcStatus::kLocalQpOperation);
  EXPECT_EQ(parsed(ROCEGW_WR_ATOMIC_WRITE, {{0, 4, 1}, {8, 4, 1}}), WcStatus::kSuccess);
  EXPECT_EQ(request.remote_length(), 8u);
  EXPECT_FALSE(request.reads_remote());
  EXPECT_EQ(parsed(ROCEGW_WR_ATOMIC_WRITE, {{0, 9, 1}}), WcStatus::kLocalLength);
  config.type = QpType::kXrcSend;
  EXPECT_EQ(parsed(ROCEGW_WR_ATOMIC_WRITE, {{0, 8, 1}}), WcStatus::kLocalQpOperation);
}

TEST_F(WorkRequest, Opcodes_ByType) {
  struct Case {
    uint8_t opcode;
    bool rc, ud, endpoint;
  };
  constexpr Case kCases[] = {
      {ROCEGW_WR_RDMA_WRITE, true, false, true},
      {ROCEGW_WR_RDMA_WRITE_WITH_IMM, true, false, true},
      {ROCEGW_WR_SEND, true, true, true},
      {ROCEGW_WR_SEND_WITH_IMM, true, true, true},
      {ROCEGW_WR_RDMA_READ, true, false, true},
      {ROCEGW_WR_ATOMIC_CMP_AND_SWP, true, false, true},
      {ROCEGW_WR_ATOMIC_FETCH_AND_ADD, true, false, true},
      {ROCEGW_WR_LOCAL_INV, true, false, false},
      {ROCEGW_WR_BIND_MW, true, false, false},
      {ROCEGW_WR_SEND_WITH_INV, true, false, false},
      {10, false, false, false},
      {255, false, false, false},
  };
  for (const Case& c : kCases) {
    wqe.opcode = c.opcode;
    config.type = QpType::kRc;
    EXPECT_EQ(SendOf({{0, 8, 1}}), c.rc ? WcStatus::kSuccess : WcStatus::kLocalQpOperation)
        << int{c.opcode};
    config.type = QpType::kUd;
    EXPECT_EQ(SendOf({{0, 8, 1}}), c.ud ? WcStatus::kSuccess : WcStatus::kLocalQpOperation)
        << int{c.opcode};
    config.type = QpType::kEndpoint;
    EXPECT_EQ(SendOf({{0, 8, 1}}), c.endpoint ? WcStatus::kSuccess : WcStatus::kLocalQpOperation)
        << int{c.opcode};
  }
}

TEST_F(WorkRequest, Atomic_EightBytes) {
  wqe.opcode = ROCEGW_WR_ATOMIC_CMP_AND_SWP;
  wqe.u.rdma.remote_address = 0x5000;
  wqe.u.rdma.rkey = 9;
  wqe.u.rdma.compare_add = 1;
  wqe.u.rdma.swap = 2;
  EXPECT_EQ(SendOf({{0, 7, 1}}), WcStatus::kLocalLength);
  EXPECT_EQ(SendOf({{0, 9, 1}}), WcStatus::kLocalLength);
  EXPECT_EQ(SendOf({{0, 4, 1}, {8, 4, 1}}), WcStatus::kSuccess);
  EXPECT_TRUE(request.is_atomic());
  EXPECT_TRUE(request.reads_remote());
  EXPECT_EQ(request.remote_address, 0x5000u);
  EXPECT_EQ(request.rkey, 9u);
  EXPECT_EQ(request.compare_add, 1u);
  EXPECT_EQ(request.swap, 2u);
}

TEST_F(WorkRequest, Datagram_AddressVector) {
  config.type = QpType::kUd;
  wqe.u.ud.av.sgid_index = 2;
  wqe.u.ud.remote_qpn = 0xFF000011;
  wqe.u.ud.remote_qkey = 0x80000001;
  EXPECT_EQ(SendOf({{0, 8, 1}}), WcStatus::kSuccess);
  EXPECT_EQ(request.remote_qpn, Qpn{0x11}) << "24 bits";
  EXPECT_EQ(request.remote_qkey, 0x80000001u);
  EXPECT_EQ(request.av.sgid_index, 2);
  EXPECT_EQ(request.remote_address, 0u);
}

TEST_F(WorkRequest, PayloadInTheRing_SlotForSlot) {
  for (const uint16_t flag : {ROCEGW_WQE_INLINE, ROCEGW_WQE_COPIED}) {
    wqe.flags = flag;
    EXPECT_EQ(SendOf({{0, kPayloadStride, 0}}), WcStatus::kSuccess);
    EXPECT_EQ(request.ring_payload, payload.data() + size_t{3} * kPayloadStride);
    EXPECT_EQ(Send(kEntries * 5 + 7), WcStatus::kSuccess);
    EXPECT_EQ(request.ring_payload, payload.data() + size_t{7} * kPayloadStride);
    EXPECT_EQ(SendOf({{0, kPayloadStride + 1, 0}}), WcStatus::kLocalLength);
    EXPECT_EQ(request.ring_payload, nullptr);
  }
}

TEST_F(WorkRequest, PayloadInTheRing_NotForReadsAndAtomics) {
  wqe.flags = ROCEGW_WQE_INLINE;
  for (const uint8_t opcode : {ROCEGW_WR_RDMA_READ, ROCEGW_WR_ATOMIC_FETCH_AND_ADD}) {
    wqe.opcode = opcode;
    EXPECT_EQ(SendOf({{0, 8, 0}}), WcStatus::kLocalQpOperation);
  }
}

TEST_F(WorkRequest, ArbitraryBytes_NeverMoreThanWasOffered) {
  testing::Random random(testing::TestSeed(20261121));
  for (int i = 0; i < 20000; ++i) {
    slot = random.Bytes(slot.size());
    // Mostly plausible, because otherwise nearly everything fails at the opcode.
    if (random.Below(8) != 0) slot[offsetof(rocegw_send_wqe, opcode)] %= 12;
    if (random.Below(8) != 0) slot[offsetof(rocegw_send_wqe, num_sge)] %= 6;
    config.type = random.Coin() ? QpType::kRc : QpType::kUd;
    const auto index = random.Value<uint32_t>();
    if (ParseSend(config, config, slot.data(), index, request, sges) != WcStatus::kSuccess)
      continue;
    ASSERT_LE(request.sge_count, kMostSges);
    uint64_t total = 0;
    for (uint32_t k = 0; k < request.sge_count; ++k) total += sges[k].length;
    ASSERT_EQ(request.length, total);
    ASSERT_LE(total, kMaxMessage);
    if (request.ring_payload == nullptr) continue;
    ASSERT_GE(request.ring_payload, payload.data());
    ASSERT_LE(request.ring_payload + request.length, payload.data() + payload.size());
  }
}

TEST_F(WorkRequest, Receive_CapacityAndBounds) {
  const auto parse = [&](uint32_t num_sge, std::vector<rocegw_sge> of, ReceiveRequest& out) {
    const rocegw_recv_wqe receive{5, num_sge, 0};
    std::memcpy(slot.data(), &receive, sizeof receive);
    for (size_t i = 0; i < of.size(); ++i) {
      std::memcpy(slot.data() + sizeof receive + i * sizeof of[i], &of[i], sizeof of[i]);
    }
    return ParseReceive(config, slot.data(), 9, out, sges);
  };
  ReceiveRequest out;
  EXPECT_EQ(parse(2, {{0, UINT32_MAX, 1}, {0, UINT32_MAX, 1}}, out), WcStatus::kSuccess);
  EXPECT_EQ(out.capacity, uint64_t{UINT32_MAX} * 2) << "more than a message, which is no error";
  EXPECT_EQ(out.wr_id, 5u);
  EXPECT_EQ(out.ring_slot, 9u);
  EXPECT_EQ(parse(0, {}, out), WcStatus::kSuccess);
  EXPECT_EQ(out.capacity, 0u);
  EXPECT_EQ(parse(kMostSges, {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}, {0, 4, 1}}, out),
            WcStatus::kSuccess);
  EXPECT_EQ(out.capacity, 10u);
  EXPECT_EQ(parse(kMostSges + 1, {}, out), WcStatus::kLocalQpOperation);
  config.max_recv_sge = kMostSges + 1;
  EXPECT_EQ(parse(kMostSges + 1, {}, out), WcStatus::kLocalQpOperation) << "no room for the list";
  EXPECT_EQ(parse(0x80000000, {}, out), WcStatus::kLocalQpOperation);
  EXPECT_EQ(out.wr_id, 5u);
  EXPECT_EQ(out.sge_count, 0u);
}

class Lists : public WorkRequest {
 protected:
  Lists() {
    RegionConfig region;
    region.key = MemoryKey{1};
    region.session = config.session;
    region.pd = config.pd;
    region.access = kAccessLocalWrite;
    region.iova = 0x1000;
    region.address = 0x7000;
    region.length = 0x1000;
    EXPECT_TRUE(regions.Link(region));
    region.key = MemoryKey{2};
    region.access = 0;
    region.direct = direct.data();
    region.direct_from = 0x400;
    region.direct_length = 0xC00;
    EXPECT_TRUE(regions.Link(region));
  }
  bool Walk(const std::vector<rocegw_sge>& of, uint64_t offset, uint32_t length) {
    pieces.clear();
    return WalkPieces(regions, config.send_keys(), of, 0, offset, length,
                      [&](const Piece& piece) { pieces.push_back(piece); });
  }
  MrTable regions;
  std::array<uint8_t, 0x1000> direct{};
  std::vector<Piece> pieces;
};

TEST_F(Lists, CheckKeys_EveryElementThatHasBytes) {
  const auto check = [&](const std::vector<rocegw_sge>& of, uint32_t access) {
    return CheckKeys(regions, config.send_keys(), of, access);
  };
  EXPECT_TRUE(check({{0x1000, 0x1000, 1}, {0x1FFF, 1, 2}}, 0));
  EXPECT_FALSE(check({{0x1000, 0x1000, 1}, {0x1FFF, 1, 2}}, kAccessLocalWrite));
  EXPECT_TRUE(check({{0x1000, 0x1000, 1}, {0x9999, 0, 77}}, kAccessLocalWrite));
  EXPECT_FALSE(check({{0x1000, 0x1000, 1}, {0x1000, 1, 77}}, 0));
  EXPECT_FALSE(check({{0x0FFF, 2, 1}}, 0));
  EXPECT_FALSE(check({{0x1001, 0x1000, 1}}, 0));
}

TEST_F(Lists, Walk_PlacesInTheClientAndInOurMapping) {
  ASSERT_TRUE(Walk({{0x1010, 16, 1}, {0x1800, 16, 2}}, 8, 16));
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].address, 0x7018u);
  EXPECT_EQ(pieces[0].direct, nullptr);
  EXPECT_EQ(pieces[0].length, 8u);
  EXPECT_EQ(pieces[0].offset, 0u);
  EXPECT_EQ(pieces[1].address, 0x7800u);
  EXPECT_EQ(pieces[1].direct, direct.data() + 0x400);
  EXPECT_EQ(pieces[1].length, 8u);
  EXPECT_EQ(pieces[1].offset, 8u);
}

TEST_F(Lists, Walk_PieceNotWhollyInOurMapping_IsNotDirect) {
  ASSERT_TRUE(Walk({{0x13FF, 2, 2}, {0x1400, 0xC00, 2}}, 0, 0xC02));
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].direct, nullptr);
  EXPECT_EQ(pieces[1].direct, direct.data());
}

TEST_F(Lists, Walk_NothingAsked_NothingGiven) {
  EXPECT_TRUE(Walk({{0x1010, 16, 77}}, 0, 0));
  EXPECT_TRUE(pieces.empty());
}

TEST_F(Lists, Walk_BeyondTheList_False) {
  EXPECT_FALSE(Walk({{0x1010, 16, 1}}, 8, 9));
  EXPECT_FALSE(Walk({{0x1010, 16, 1}}, 16, 1));
  EXPECT_FALSE(Walk({}, 0, 1));
}

TEST_F(Lists, Walk_RegionGone_False) {
  ASSERT_TRUE(regions.Unlink(MemoryKey{2}));
  EXPECT_FALSE(Walk({{0x1010, 16, 1}, {0x1800, 16, 2}}, 0, 32));
  EXPECT_EQ(pieces.size(), 1u);
}

// Compared with a list of single bytes.
TEST_F(Lists, Walk_RandomRanges_EqualTheModel) {
  testing::Random random(testing::TestSeed(7));
  for (int round = 0; round < 2000; ++round) {
    std::vector<rocegw_sge> of(random.Below(6));
    std::vector<uint64_t> bytes;
    for (rocegw_sge& sge : of) {
      sge.address = 0x1000 + random.Below(0xF00);
      sge.length = static_cast<uint32_t>(random.Below(40));
      sge.lkey = 1;
      for (uint32_t i = 0; i < sge.length; ++i) bytes.push_back(sge.address + 0x6000 + i);
    }
    const size_t offset = random.Below(bytes.size() + 1);
    const size_t length = random.Below(bytes.size() - offset + 1);
    ASSERT_TRUE(Walk(of, offset, static_cast<uint32_t>(length)));
    size_t at = 0;
    for (const Piece& piece : pieces) {
      ASSERT_NE(piece.length, 0u);
      ASSERT_EQ(piece.offset, at);
      for (uint32_t i = 0; i < piece.length; ++i) {
        ASSERT_EQ(piece.address + i, bytes[offset + at]);
        ++at;
      }
    }
    ASSERT_EQ(at, length);
  }
}

}  // namespace
}  // namespace rocegw::verbs
