// SPDX-License-Identifier: Apache-2.0
// Shared receive queues: which queue pair takes which receive, the case of no receive, receives
// that were taken and will not complete, and the events for the program.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "gateway/wire/codec.h"
#include "tests/support/qp/qp_host.h"

namespace rocegw::testing::shared_receives {
namespace {

using transport::SharedReceives;
using verbs::AsyncEvent;
using verbs::QpState;
using Look = SharedReceives::Look;

constexpr uint64_t kBuffers = 0x10000;
constexpr uint32_t kBufferSize = 0x1000;
constexpr uint32_t kCommonKey = 0x7777;

// Receivers of one shared receive queue, each with its own sender on a lossless wire.
class Crowd {
 public:
  explicit Crowd(SharedOptions options = {}, size_t pairs = 2,
                 verbs::QpType type = verbs::QpType::kRc)
      : end(options), receives(end.Srq()), type_(type) {
    gids_.entries[0] = wire::Gid::FromV4(0xC0000201);
    for (uint32_t i = 0; i < pairs; ++i) {
      QpHost::Options to;
      to.type = type;
      to.qpn = 0x100 + i;
      to.shared = &end;
      to.srq = &receives;
      QpHost::Options from;
      from.type = type;
      from.qpn = 0x200 + i;
      from.gid = wire::Gid::FromV4(0xC0000202);
      from.gids = &gids_;
      into.push_back(std::make_unique<QpHost>(to));
      out_of.push_back(std::make_unique<QpHost>(from));
      // Keys of receives are resolved in the memory of the queue pair that takes them.
      verbs::RegionConfig region;
      region.key = MemoryKey{kCommonKey};
      region.session = SessionId{1};
      region.pd = options.pd;
      region.access = verbs::kAccessLocalWrite;
      region.iova = region.address = QpHost::kBase;
      region.length = into[i]->memory().size();
      EXPECT_TRUE(into[i]->regions().Link(region));
      if (type == verbs::QpType::kRc) {
        QpHost::Connect(*into[i], *out_of[i], 1, 100, 200);
      } else {
        ReadyDatagrams(*into[i]);
        ReadyDatagrams(*out_of[i]);
      }
    }
  }

  void Post(uint64_t id, uint32_t length = kBufferSize) {
    ASSERT_TRUE(
        end.PostReceive(id, {{QpHost::kBase + kBuffers + id * kBufferSize, length, kCommonKey}}));
  }
  // Returns the packets of a SEND by that pair's sender. Every payload byte is the pair's number.
  std::deque<WirePacket> Send(size_t pair, uint32_t length) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.u.ud.remote_qpn = 0x100 + static_cast<uint32_t>(pair);
    wqe.u.ud.remote_qkey = 5;
    const wire::Gid to = wire::Gid::FromV4(0xC0000201);
    std::copy(to.bytes.begin(), to.bytes.end(), wqe.u.ud.av.dgid);
    QpHost& host = *out_of[pair];
    std::fill_n(host.memory().begin(), length, static_cast<uint8_t>(pair + 1));
    host.PostSend(wqe, {{0, length}});
    now_ = now_ + Microseconds(10);
    host.Pump(now_);
    host.Settle();
    std::deque<WirePacket> packets;
    packets.swap(host.sent);
    return packets;
  }
  void Deliver(size_t pair, const WirePacket& packet) {
    into[pair]->Deliver(packet, now_);
    into[pair]->Settle();
    into[pair]->Pump(now_);
    into[pair]->Settle();
  }
  void DeliverAll(size_t pair, uint32_t length) {
    for (const WirePacket& packet : Send(pair, length)) Deliver(pair, packet);
  }
  // Returns the receives that completed at that queue pair and frees their slots.
  std::vector<rocegw_cqe> Poll(size_t pair) {
    std::vector<rocegw_cqe> all = into[pair]->Poll();
    for (const rocegw_cqe& cqe : all) end.Free(cqe.ring_slot);
    return all;
  }
  size_t Heard(size_t pair, AsyncEvent event) const {
    return static_cast<size_t>(
        std::count(into[pair]->events.begin(), into[pair]->events.end(), event));
  }
  bool Holds(size_t pair, uint64_t id, size_t offset, size_t length) const {
    const auto at =
        into[pair]->memory().begin() + static_cast<ptrdiff_t>(kBuffers + id * kBufferSize + offset);
    return std::all_of(at, at + static_cast<ptrdiff_t>(length),
                       [&](uint8_t byte) { return byte == pair + 1; });
  }

  SharedEnd end;
  SharedReceives receives;
  std::vector<std::unique_ptr<QpHost>> into;
  std::vector<std::unique_ptr<QpHost>> out_of;

 private:
  void ReadyDatagrams(QpHost& host) {
    verbs::QpAttributes want;
    want.qkey = 5;
    want.state = QpState::kInit;
    ASSERT_EQ(
        host.Modify(verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey,
                    want),
        0);
    ASSERT_EQ(host.ToState(QpState::kRtr), 0);
    want.state = QpState::kRts;
    ASSERT_EQ(host.Modify(verbs::kAttrState | verbs::kAttrSqPsn, want), 0);
  }

  verbs::QpType type_;
  verbs::GidTable gids_;
  TimePoint now_{1000000};
};

TEST(SharedReceives, AreTakenInTheOrderOfPosting_ByWhoeverHasAMessage) {
  Crowd crowd;
  for (uint64_t id : {0, 1, 2}) crowd.Post(id);
  crowd.DeliverAll(1, 600);
  crowd.DeliverAll(0, 5);
  crowd.DeliverAll(1, 0);
  const std::vector<rocegw_cqe> first = crowd.Poll(0);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].wr_id, 1u);
  EXPECT_EQ(first[0].qpn, 0x100u);
  EXPECT_EQ(first[0].byte_length, 5u);
  const std::vector<rocegw_cqe> second = crowd.Poll(1);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_EQ(second[0].wr_id, 0u);
  EXPECT_EQ(second[1].wr_id, 2u);
  EXPECT_TRUE(crowd.Holds(1, 0, 0, 600));
  EXPECT_TRUE(crowd.Holds(0, 1, 0, 5));
  EXPECT_EQ(crowd.end.free_slots(), 16u);
}

TEST(SharedReceives, ShortMessage_TravelsInItsSlot) {
  Crowd crowd({.payload_stride = 64});
  crowd.Post(3);
  crowd.DeliverAll(1, 64);
  const std::vector<rocegw_cqe> done = crowd.Poll(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_TRUE((done[0].flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0);
  const uint8_t* const payload = crowd.end.payload(done[0].ring_slot);
  EXPECT_TRUE(std::all_of(payload, payload + 64, [](uint8_t byte) { return byte == 2; }));
}

TEST(SharedReceives, None_ThePeerComesAgain) {
  Crowd crowd;
  const auto packets = crowd.Send(0, 8);
  ASSERT_EQ(packets.size(), 1u);
  crowd.Deliver(0, packets[0]);
  EXPECT_EQ(crowd.into[0]->last_drop, metrics::DropReason::k_rnr_wait);
  EXPECT_TRUE(crowd.Poll(0).empty());
  crowd.Post(4);
  crowd.Deliver(0, packets[0]);
  const std::vector<rocegw_cqe> done = crowd.Poll(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 4u);
}

TEST(SharedReceives, OneThatTakesLong_HoldsUpNoOther) {
  Crowd crowd({.entries = 4});
  for (uint64_t id : {0, 1, 2, 3}) crowd.Post(id);
  const auto slow = crowd.Send(0, 600);
  crowd.Deliver(0, slow[0]);
  // The other queue pair wraps around the ring many times.
  uint64_t next = 1;
  for (int i = 0; i < 20; ++i) {
    crowd.DeliverAll(1, 10);
    const std::vector<rocegw_cqe> done = crowd.Poll(1);
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, 0);
    EXPECT_EQ(done[0].wr_id, next);
    next = next % 3 + 1;
    crowd.Post(done[0].wr_id);
  }
  crowd.Deliver(0, slow[1]);
  crowd.Deliver(0, slow[2]);
  const std::vector<rocegw_cqe> done = crowd.Poll(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 0u);
  EXPECT_TRUE(crowd.Holds(0, 0, 0, 600));
}

TEST(SharedReceives, TakenByOneThatIsReset_IsTheNextOfAnother) {
  Crowd crowd;
  crowd.Post(0);
  crowd.Post(1);
  crowd.Deliver(0, crowd.Send(0, 600)[0]);
  ASSERT_EQ(crowd.into[0]->ToState(QpState::kReset), 0);
  crowd.DeliverAll(1, 10);
  crowd.DeliverAll(1, 10);
  const std::vector<rocegw_cqe> done = crowd.Poll(1);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 0u);
  EXPECT_EQ(done[1].wr_id, 1u);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 0u);
}

TEST(SharedReceives, TakenByOneThatGoes_IsTheNextOfAnother) {
  Crowd crowd;
  crowd.Post(0);
  crowd.Deliver(0, crowd.Send(0, 600)[0]);
  crowd.into[0]->qp().GiveBackReceives();
  crowd.DeliverAll(1, 10);
  const std::vector<rocegw_cqe> done = crowd.Poll(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 0u);
}

TEST(SharedReceives, Error_FlushesWhatWasTaken_LeavesTheRest_SaysItWasTheLast) {
  Crowd crowd;
  crowd.Post(0);
  crowd.Post(1);
  crowd.Deliver(0, crowd.Send(0, 600)[0]);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 0u);
  ASSERT_EQ(crowd.into[0]->ToState(QpState::kError), 0);
  const std::vector<rocegw_cqe> flushed = crowd.Poll(0);
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].wr_id, 0u);
  EXPECT_EQ(flushed[0].status, static_cast<uint8_t>(verbs::WcStatus::kFlush));
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 1u);
  crowd.DeliverAll(1, 10);
  const std::vector<rocegw_cqe> done = crowd.Poll(1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 1u);
  crowd.into[0]->Pump(TimePoint{2000000});
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 1u) << "once";
}

TEST(SharedReceives, Error_TheLastIsSaidBehindItsCompletion) {
  Crowd crowd;
  crowd.Post(0);
  QpHost& host = *crowd.into[0];
  host.Deliver(crowd.Send(0, 100)[0], TimePoint{1500000});
  ASSERT_FALSE(host.queued().empty());
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 0u) << "its bytes are not in place";
  host.Settle();
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 1u);
  EXPECT_EQ(crowd.Poll(0).size(), 1u);
  // After a reset, the event is raised again.
  ASSERT_EQ(host.ToState(QpState::kReset), 0);
  ASSERT_EQ(host.ToState(QpState::kError), 0);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 2u);
}

TEST(SharedReceives, FewerThanTheLimit_IsSaidOnce) {
  Crowd crowd({.limit = 2});
  for (uint64_t id : {0, 1, 2}) crowd.Post(id);
  crowd.DeliverAll(0, 1);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kSrqLimitReached), 0u) << "two are as many as the limit";
  crowd.DeliverAll(1, 1);
  EXPECT_EQ(crowd.Heard(1, AsyncEvent::kSrqLimitReached), 1u);
  EXPECT_EQ(crowd.receives.limit(), 0u);
  crowd.DeliverAll(0, 1);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kSrqLimitReached), 0u);
  crowd.receives.Arm(1);
  EXPECT_TRUE(crowd.receives.TakeLimitEvent()) << "it is so already";
  EXPECT_EQ(crowd.receives.limit_events(), 2u);
}

TEST(SharedReceives, Counts_WhatWaitsAndWhatWasTaken) {
  SharedEnd end({.entries = 4});
  SharedReceives receives(end.Srq());
  for (uint32_t i = 0; i < 3; ++i) end.order()[i] = i;
  end.control().producer = 3;
  EXPECT_EQ(receives.waiting(), 3u);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(receives.Check(), Look::kReady);
    receives.Fetch();
  }
  EXPECT_EQ(receives.waiting(), 1u);
  EXPECT_EQ(receives.taken(), 2u);
  receives.GiveBack(1);
  EXPECT_EQ(receives.waiting(), 2u);
  EXPECT_EQ(receives.taken(), 1u);
  end.control().producer = 77;
  EXPECT_EQ(receives.waiting(), 1u) << "an impossible index counts for nothing";
}

TEST(SharedReceives, KeysAreThoseOfItsOwnProtectionDomain) {
  Crowd crowd({.pd = 9});
  crowd.Post(0);
  crowd.DeliverAll(0, 10);
  const std::vector<rocegw_cqe> done = crowd.Poll(0);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, 0);
}

TEST(SharedReceives, ImpossibleSlotOrIndex_IsTheClientsFault) {
  SharedEnd end({.entries = 4});
  SharedReceives receives(end.Srq());
  EXPECT_EQ(receives.Check(), Look::kEmpty);
  end.order()[0] = 4;
  end.control().producer = 1;
  EXPECT_EQ(receives.Check(), Look::kFault);
  end.order()[0] = 3;
  EXPECT_EQ(receives.Check(), Look::kReady);
  EXPECT_EQ(receives.Fetch(), 3u);
  end.control().producer = 6;
  EXPECT_EQ(receives.Check(), Look::kFault);
}

TEST(SharedReceives, Datagrams_TakeThemToo_AndATooLongOneLeavesThem) {
  Crowd crowd({}, 2, verbs::QpType::kUd);
  crowd.Post(0, 100);
  crowd.Post(1, 100);
  crowd.DeliverAll(0, 200);
  EXPECT_EQ(crowd.into[0]->last_drop, metrics::DropReason::k_ud_too_long);
  crowd.DeliverAll(1, 50);
  crowd.DeliverAll(0, 40);
  const std::vector<rocegw_cqe> second = crowd.Poll(1);
  const std::vector<rocegw_cqe> first = crowd.Poll(0);
  ASSERT_EQ(second.size(), 1u);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(second[0].wr_id, 0u);
  EXPECT_EQ(first[0].wr_id, 1u);
  EXPECT_TRUE(crowd.Holds(1, 0, 40, 50));
  ASSERT_EQ(crowd.into[0]->ToState(QpState::kError), 0);
  EXPECT_EQ(crowd.Heard(0, AsyncEvent::kLastWqeReached), 1u);
  EXPECT_EQ(crowd.end.free_slots(), 16u);
}

// Receives that waited before the resize are taken in order, at their slots, before later ones.
// Slots without payload areas are filled by memory operations.
TEST(SharedReceives, Larger_WhileReceivesWait) {
  for (const auto type : {verbs::QpType::kRc, verbs::QpType::kUd}) {
    Crowd crowd({.entries = 4, .payload_stride = 256}, 1, type);
    for (uint64_t id = 0; id < 3; ++id) crowd.Post(id);
    crowd.DeliverAll(0, 64);
    crowd.DeliverAll(0, 64);
    EXPECT_EQ(crowd.Poll(0).size(), 2u);
    crowd.Post(3);
    const verbs::SrqConfig larger = crowd.end.Grow(16);
    crowd.receives.Grow(larger.entries, larger.order, larger.slots);
    for (uint64_t id = 4; id < 10; ++id) crowd.Post(id);
    EXPECT_EQ(crowd.end.free_slots(), 8u);
    std::vector<uint64_t> ids;
    size_t in_memory = 0;
    for (int i = 0; i < 8; ++i) {
      crowd.DeliverAll(0, 64);
      for (const rocegw_cqe& cqe : crowd.Poll(0)) {
        EXPECT_EQ(cqe.status, 0);
        ids.push_back(cqe.wr_id);
        const size_t header = type == verbs::QpType::kUd ? 40 : 0;
        const bool in_ring = (cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0;
        EXPECT_EQ(in_ring, cqe.ring_slot < 4);
        EXPECT_TRUE(in_ring || crowd.Holds(0, cqe.wr_id, header, 64));
        in_memory += in_ring ? 0 : 1;
      }
    }
    EXPECT_EQ(ids, (std::vector<uint64_t>{2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(in_memory, 6u);
  }
}

}  // namespace
}  // namespace rocegw::testing::shared_receives
