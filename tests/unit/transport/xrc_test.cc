// SPDX-License-Identifier: Apache-2.0
// XRC: a queue pair that receives for the shared receive queues of a domain, which belong to
// different sessions; the sender names a queue in every message. Covers the assignment of receives,
// memory and completions, refusals, the removal of an owner, and all of it with packet loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "tests/support/qp/qp_host.h"
#include "tests/support/random.h"

namespace rocegw::testing::xrc {
namespace {

using transport::SharedReceives;
using verbs::AsyncEvent;
using verbs::QpState;
using verbs::WcStatus;
using wire::NakCode;
using wire::Opcode;

constexpr uint32_t kMtu = 256;
constexpr uint32_t kSlotSize = 0x2000;

// Session with one shared receive queue in the domain and a part of the target's memory.
struct Owner {
  Owner(QpHost& target, transport::XrcDomain& domain, uint32_t session, uint32_t number,
        SharedOptions options = {})
      : end(Options(session, options)),
        rings([&] {
          RingOptions ring;
          ring.session = session;
          return ring;
        }()),
        cq(rings.Cq()),
        receives(Config(session, number)),
        key(0x100 * session),
        base(0x10000ull * session) {
    verbs::RegionConfig region;
    region.key = MemoryKey{key};
    region.session = SessionId{session};
    region.pd = session + 3;
    region.access = verbs::kAccessLocalWrite | verbs::kAccessRemoteRead |
                    verbs::kAccessRemoteWrite | verbs::kAccessRemoteAtomic;
    region.iova = region.address = QpHost::kBase + base;
    region.length = 0x10000;
    EXPECT_TRUE(target.regions().Link(region));
    EXPECT_TRUE(domain.Add({&receives, &cq, SessionIndex{session}}));
  }
  static SharedOptions Options(uint32_t session, SharedOptions options) {
    options.session = session;
    options.handle = 40 + session;
    options.pd = session + 3;
    return options;
  }
  verbs::SrqConfig Config(uint32_t session, uint32_t number) {
    verbs::QpConfig told;
    end.Describe(told);
    verbs::SrqConfig config = end.Srq();
    config.domain = SessionId{99};
    config.number = number;
    config.pd = session + 3;
    config.max_sge = told.max_recv_sge;
    config.payload_slots = told.rq_entries;
    config.payload_stride = told.rq_payload_stride;
    config.payload = told.rq_payload;
    return config;
  }
  void Post(uint64_t id, uint32_t length = kSlotSize) {
    ASSERT_TRUE(end.PostReceive(id, {{QpHost::kBase + base + id * kSlotSize, length, key}}));
  }
  std::vector<rocegw_cqe> Poll() {
    std::vector<rocegw_cqe> all = rings.Poll();
    for (const rocegw_cqe& cqe : all) end.Free(cqe.ring_slot);
    return all;
  }

  SharedEnd end;
  RingEnd rings;
  verbs::CompletionQueue cq;
  SharedReceives receives;
  uint32_t key;
  uint64_t base;  // in the target's memory
};

class Xrc : public ::testing::Test {
 protected:
  static constexpr uint32_t kFirst = 0x51;
  static constexpr uint32_t kSecond = 0xABCDEF;

  void SetUp() override {
    QpHost::Options from;
    from.type = verbs::QpType::kXrcSend;
    from.qpn = 0x200;
    from.gid = wire::Gid::FromV4(0xC0000202);
    source = std::make_unique<QpHost>(from);
    QpHost::Options to;
    to.type = verbs::QpType::kXrcReceive;
    to.qpn = 0x100;
    to.session = 99;
    to.domain = &domain;
    target = std::make_unique<QpHost>(to);
    // The domain has neither completion queues nor memory.
    target->context().send_cq = target->context().recv_cq = nullptr;
    first = std::make_unique<Owner>(*target, domain, 2, kFirst);
    second = std::make_unique<Owner>(*target, domain, 3, kSecond);
    verbs::QpAttributes limits = QpHost::DefaultLimits();
    limits.timeout = 8;
    QpHost::Connect(*source, *target, 1, 100, 200, limits);
  }

  void Post(uint8_t opcode, uint32_t number, uint32_t length, uint64_t remote = 0,
            uint32_t rkey = 0, uint64_t id = 0) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = id;
    wqe.opcode = opcode;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.imm_or_rkey = 0x01020304;
    wqe.u.rdma.remote_address = remote;
    wqe.u.rdma.rkey = rkey;
    wqe.u.rdma.compare_add = 5;
    wqe.u.rdma.peer = number;
    source->PostSend(wqe, {{0, length}});
  }
  // Returns the packets that the source sends now.
  std::deque<WirePacket> Sent() {
    source->Pump(now);
    source->Settle();
    return std::exchange(source->sent, {});
  }
  void Deliver(const WirePacket& packet) { target->Deliver(packet, now); }
  // Delivers the target's answers to the source.
  void Answer() {
    target->Settle();
    target->Pump(now);
    target->Settle();
    for (const WirePacket& packet : std::exchange(target->sent, {})) source->Deliver(packet, now);
    source->Settle();
  }
  // Runs until nothing moves, packet by packet. lost(n): whether the n-th packet is dropped.
  void Run(const std::function<bool(int)>& lost = [](int) { return false; }) {
    for (int quiet = 0; quiet < 400; ++quiet) {
      now = now + Microseconds(50);
      if (source->qp().deadline() <= now) source->Deadline(now);
      if (target->qp().deadline() <= now) target->Deadline(now);
      const std::deque<WirePacket> out = Sent();
      for (const WirePacket& packet : out)
        if (!lost(packets++)) Deliver(packet);
      target->Settle();
      target->Pump(now);
      target->Settle();
      const std::deque<WirePacket> back = std::exchange(target->sent, {});
      for (const WirePacket& packet : back)
        if (!lost(packets++)) source->Deliver(packet, now);
      source->Settle();
      if (!out.empty() || !back.empty()) quiet = 0;
    }
  }
  static Opcode OpcodeOf(const WirePacket& packet) { return static_cast<Opcode>(packet.bytes[0]); }
  // Returns the packet with the number of another queue.
  static WirePacket Renamed(WirePacket packet, uint32_t number) {
    packet.bytes[13] = static_cast<uint8_t>(number >> 16);
    packet.bytes[14] = static_cast<uint8_t>(number >> 8);
    packet.bytes[15] = static_cast<uint8_t>(number);
    return Sealed(std::move(packet));
  }
  // Returns the packet with another PSN.
  static WirePacket Numbered(WirePacket packet, uint32_t psn) {
    packet.bytes[9] = static_cast<uint8_t>(psn >> 16);
    packet.bytes[10] = static_cast<uint8_t>(psn >> 8);
    packet.bytes[11] = static_cast<uint8_t>(psn);
    return Sealed(std::move(packet));
  }
  static WirePacket Sealed(WirePacket packet) {
    wire::Path path;
    path.source = packet.meta.source;
    path.destination = packet.meta.destination;
    path.source_port = packet.meta.source_port;
    path.traffic_class = packet.meta.traffic_class;
    wire::SealIcrc(path, packet.meta.ip_id, packet.bytes.data(), packet.bytes.size() - 4);
    return packet;
  }
  void Fill(uint8_t byte, size_t length) { std::fill_n(source->memory().begin(), length, byte); }
  bool Holds(const Owner& owner, uint64_t id, uint8_t byte, size_t length) const {
    const auto at = target->memory().begin() + static_cast<ptrdiff_t>(owner.base + id * kSlotSize);
    return std::all_of(at, at + static_cast<ptrdiff_t>(length),
                       [&](uint8_t b) { return b == byte; });
  }

  transport::XrcDomain domain;
  std::unique_ptr<QpHost> source;
  std::unique_ptr<QpHost> target;
  std::unique_ptr<Owner> first;
  std::unique_ptr<Owner> second;
  TimePoint now{1000000};
  int packets = 0;
};

TEST_F(Xrc, Send_GoesToTheQueueThatItNames_AndCompletesWithItsOwner) {
  first->Post(0);
  second->Post(0);
  Fill(7, 600);
  Post(ROCEGW_WR_SEND_WITH_IMM, kSecond, 600);
  const std::deque<WirePacket> packets_sent = Sent();
  ASSERT_EQ(packets_sent.size(), 3u);
  EXPECT_EQ(OpcodeOf(packets_sent[0]), Opcode::kXrcSendFirst);
  EXPECT_EQ(OpcodeOf(packets_sent[1]), Opcode::kXrcSendMiddle);
  EXPECT_EQ(OpcodeOf(packets_sent[2]), Opcode::kXrcSendLastImm);
  for (const WirePacket& packet : packets_sent) {
    EXPECT_EQ(packet.bytes[13], 0xAB) << "every packet names it";
    Deliver(packet);
  }
  target->Settle();
  target->Pump(now);
  target->Settle();
  ASSERT_EQ(target->sent.size(), 1u);
  EXPECT_EQ(OpcodeOf(target->sent[0]), Opcode::kXrcAck);
  Answer();
  ASSERT_EQ(source->Poll().size(), 1u);
  EXPECT_TRUE(first->Poll().empty());
  const std::vector<rocegw_cqe> done = second->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, 0);
  EXPECT_EQ(done[0].qpn, 0x100u);
  EXPECT_EQ(done[0].qp_handle, 43u) << "the receive queue, not the queue pair";
  EXPECT_EQ(done[0].flags, ROCEGW_CQE_XRC | ROCEGW_CQE_RECEIVE | ROCEGW_CQE_WITH_IMM);
  EXPECT_EQ(done[0].byte_length, 600u);
  EXPECT_TRUE(Holds(*second, 0, 7, 600));
  EXPECT_EQ(target->context().config.session.value, 99u) << "the domain's again";
}

TEST_F(Xrc, SmallOne_LiesInThePayloadRingOfItsQueue) {
  SharedOptions options;
  options.payload_stride = 128;
  Owner third(*target, domain, 4, 77, options);
  third.Post(0);
  Fill(9, 20);
  Post(ROCEGW_WR_SEND, 77, 20);
  Run();
  const std::vector<rocegw_cqe> done = third.Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_NE(done[0].flags & ROCEGW_CQE_PAYLOAD_IN_RING, 0);
  domain.Remove(77);
}

TEST_F(Xrc, UnknownQueue_IsAnInvalidRequest) {
  first->Post(0);
  Post(ROCEGW_WR_SEND, 0x52, 10);
  Run();
  const std::vector<rocegw_cqe> done = source->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(WcStatus::kRemoteInvalidRequest));
  EXPECT_EQ(target->context().state(), QpState::kError);
  EXPECT_EQ(std::count(target->events.begin(), target->events.end(), AsyncEvent::kQpRequestError),
            1);
  EXPECT_EQ(std::count(target->events.begin(), target->events.end(), AsyncEvent::kLastWqeReached),
            0);
}

TEST_F(Xrc, EmptyQueue_MakesTheSenderWait_OthersAreNoHelp) {
  first->Post(0);
  Post(ROCEGW_WR_SEND, kSecond, 10);
  for (const WirePacket& packet : Sent()) Deliver(packet);
  Answer();
  EXPECT_EQ(source->counters().rnr_rx_packets.Read(), 1u);
  EXPECT_TRUE(first->Poll().empty());
  second->Post(0);
  now = now + Milliseconds(1);
  source->Deadline(now);
  Run();
  EXPECT_EQ(second->Poll().size(), 1u);
  EXPECT_EQ(source->Poll().size(), 1u);
}

TEST_F(Xrc, Memory_IsThatOfTheQueuesOwner) {
  const uint64_t theirs = QpHost::kBase + first->base + 0x100;
  Fill(5, 700);
  Post(ROCEGW_WR_RDMA_WRITE, kFirst, 700, theirs, first->key);
  Post(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, kFirst, 8, theirs, first->key);
  Post(ROCEGW_WR_RDMA_READ, kFirst, 600, theirs, first->key);
  Run();
  const std::vector<rocegw_cqe> done = source->Poll();
  ASSERT_EQ(done.size(), 3u);
  for (const rocegw_cqe& cqe : done) EXPECT_EQ(cqe.status, 0);
  EXPECT_EQ(source->memory()[0], 10);
  EXPECT_EQ(source->memory()[599], 5);
  // The same key, for a queue of another owner.
  Post(ROCEGW_WR_RDMA_WRITE, kSecond, 8, theirs, first->key);
  Run();
  const std::vector<rocegw_cqe> refused = source->Poll();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].status, static_cast<uint8_t>(WcStatus::kRemoteAccess));
}

TEST_F(Xrc, WriteWithImmediate_TakesAReceiveOfTheQueue) {
  second->Post(4);
  Fill(6, 300);
  Post(ROCEGW_WR_RDMA_WRITE_WITH_IMM, kSecond, 300, QpHost::kBase + second->base, second->key);
  Run();
  const std::vector<rocegw_cqe> done = second->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 4u);
  EXPECT_EQ(done[0].opcode, static_cast<uint8_t>(verbs::WcOpcode::kReceiveRdmaWithImm));
  EXPECT_TRUE(Holds(*second, 0, 6, 300));
}

TEST_F(Xrc, PacketsOfOneMessage_NameOneQueue) {
  first->Post(0);
  second->Post(0);
  Post(ROCEGW_WR_SEND, kFirst, 3 * kMtu);
  const std::deque<WirePacket> sent = Sent();
  Deliver(sent[0]);
  Deliver(Renamed(sent[1], kSecond));
  Answer();
  EXPECT_EQ(target->context().state(), QpState::kError);
  ASSERT_EQ(source->Poll().size(), 1u);
  const std::vector<rocegw_cqe> done = first->Poll();
  ASSERT_EQ(done.size(), 1u) << "its receive was begun";
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(WcStatus::kFlush));
  EXPECT_TRUE(second->Poll().empty());
}

TEST_F(Xrc, Acknowledgement_WaitsForTheMemoryOfEverySession) {
  first->Post(0);
  second->Post(0);
  Post(ROCEGW_WR_SEND, kFirst, 100);
  Post(ROCEGW_WR_SEND, kSecond, 100);
  for (const WirePacket& packet : Sent()) Deliver(packet);
  target->RunMemoryOf(SessionId{3});
  target->Pump(now);
  target->Collect();
  EXPECT_TRUE(target->sent.empty()) << "the first message is not in place";
  EXPECT_TRUE(second->Poll().empty()) << "nor may a later one complete before it";
  target->RunMemoryOf(SessionId{2});
  target->Pump(now);
  target->Collect();
  EXPECT_EQ(target->sent.size(), 1u);
  EXPECT_EQ(first->Poll().size(), 1u);
  EXPECT_EQ(second->Poll().size(), 1u);
}

TEST_F(Xrc, AnswersOfSeveralOwners_LeaveInOrder) {
  Post(ROCEGW_WR_RDMA_READ, kFirst, 300, QpHost::kBase + first->base, first->key);
  Post(ROCEGW_WR_RDMA_READ, kSecond, 300, QpHost::kBase + second->base, second->key);
  for (const WirePacket& packet : Sent()) Deliver(packet);
  target->Pump(now);
  EXPECT_EQ(target->queued().size(), 2u) << "only the first owner's memory is read until it is";
  target->Settle();
  target->Pump(now);
  target->Settle();
  std::vector<uint32_t> psns;
  for (const WirePacket& packet : target->sent)
    psns.push_back(packet.bytes[9] << 16 | packet.bytes[10] << 8 | packet.bytes[11]);
  EXPECT_EQ(psns, (std::vector<uint32_t>{100, 101, 102, 103}));
  Answer();
  EXPECT_EQ(source->Poll().size(), 2u);
}

TEST_F(Xrc, QueueThatGoes_EndsTheMessageForIt) {
  first->Post(0);
  Post(ROCEGW_WR_SEND, kFirst, 3 * kMtu);
  const std::deque<WirePacket> sent = Sent();
  Deliver(sent[0]);
  // Its owner was killed: operations in progress on its memory are never reported.
  domain.Remove(kFirst);
  first.reset();
  Deliver(sent[1]);
  target->Pump(now);
  target->Collect();
  ASSERT_EQ(target->sent.size(), 1u);
  EXPECT_EQ(target->sent[0].bytes[12], wire::SyndromeOf(NakCode::kInvalidRequest));
}

TEST_F(Xrc, QueueThatGoes_IsUnknownAfterwards_OthersAreNot) {
  second->Post(0);
  domain.Remove(kFirst);
  Post(ROCEGW_WR_SEND, kSecond, 10);
  Run();
  EXPECT_EQ(second->Poll().size(), 1u);
  Post(ROCEGW_WR_SEND, kFirst, 10);
  Run();
  const std::vector<rocegw_cqe> done = source->Poll();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].status, static_cast<uint8_t>(WcStatus::kRemoteInvalidRequest));
}

TEST_F(Xrc, ReadOfAnOwnerWhoGoes_IsRefused) {
  Post(ROCEGW_WR_RDMA_READ, kFirst, 300, QpHost::kBase + first->base, first->key);
  for (const WirePacket& packet : Sent()) Deliver(packet);
  domain.Remove(kFirst);
  Answer();
  const std::vector<rocegw_cqe> done = source->Poll();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(WcStatus::kRemoteAccess));
}

TEST_F(Xrc, OwnerThatTakesNoOperations_IsAskedAgain) {
  Post(ROCEGW_WR_RDMA_READ, kFirst, 300, QpHost::kBase + first->base, first->key);
  const std::deque<WirePacket> sent = Sent();
  target->may_access = false;
  Deliver(sent[0]);
  EXPECT_EQ(target->last_drop, metrics::DropReason::k_write_pending) << "it comes again";
  target->may_access = true;
  Deliver(sent[0]);
  target->may_access = false;
  target->Pump(now);
  EXPECT_TRUE(target->queued().empty());
  ASSERT_NE(target->qp().deadline(), kNever) << "nobody else tells when it may go on";
  now = target->qp().deadline();
  target->may_access = true;
  target->Deadline(now);
  Answer();
  EXPECT_EQ(source->Poll().size(), 1u);
}

// An operation on blocked memory keeps those of all other owners from being settled.
TEST_F(Xrc, OneOwnersMemoryIsBlocked_WhatWaitsBehindItIsBounded) {
  Post(ROCEGW_WR_RDMA_WRITE, kFirst, 16, QpHost::kBase + first->base, first->key);
  Post(ROCEGW_WR_RDMA_WRITE, kSecond, 16, QpHost::kBase + second->base, second->key);
  const std::deque<WirePacket> sent = Sent();
  ASSERT_EQ(sent.size(), 2u);
  constexpr uint32_t kFirstPsn = 100;
  uint32_t psn = kFirstPsn;
  for (uint32_t i = 0; i < 6000; ++i) {
    Deliver(Numbered(sent[psn % 2], psn));
    if (target->last_drop == metrics::DropReason::k_write_pending) break;
    ++psn;
  }
  EXPECT_GE(psn - kFirstPsn, 1000u);
  EXPECT_LE(psn - kFirstPsn, 4096u);
  target->Settle();
  Deliver(Numbered(sent[psn % 2], psn));
  EXPECT_EQ(target->last_drop, metrics::DropReason::kNone) << "it comes again";
}

TEST_F(Xrc, Reset_GivesReceivesBack) {
  first->Post(0);
  Post(ROCEGW_WR_SEND, kFirst, 3 * kMtu);
  const std::deque<WirePacket> sent = Sent();
  Deliver(sent[0]);
  target->Settle();
  EXPECT_EQ(first->receives.Check(), SharedReceives::Look::kEmpty);
  ASSERT_EQ(target->ToState(QpState::kReset), 0);
  EXPECT_EQ(first->receives.Check(), SharedReceives::Look::kReady);
}

TEST_F(Xrc, Faults_AreTheirOwnersAlone) {
  first->Post(0);
  second->Post(0);
  target->Poison(first->base, 100);
  Post(ROCEGW_WR_SEND, kFirst, 50);
  Post(ROCEGW_WR_SEND, kSecond, 50);
  for (const WirePacket& packet : Sent()) Deliver(packet);
  Answer();
  const std::vector<rocegw_cqe> theirs = first->Poll();
  ASSERT_EQ(theirs.size(), 1u);
  EXPECT_EQ(theirs[0].status, static_cast<uint8_t>(WcStatus::kLocalProtection));
  const std::vector<rocegw_cqe> others = second->Poll();
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].status, static_cast<uint8_t>(WcStatus::kFlush));
  const std::vector<rocegw_cqe> done = source->Poll();
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done[0].status, static_cast<uint8_t>(WcStatus::kRemoteOperation));
}

TEST_F(Xrc, Sender_TakesNoRequests_AndTheTargetNoAnswers) {
  first->Post(0);
  Post(ROCEGW_WR_SEND, kFirst, 10);
  WirePacket request = Sent()[0];
  std::swap(request.meta.source, request.meta.destination);
  source->Deliver(Renamed(request, kFirst), now);
  EXPECT_EQ(source->last_drop, metrics::DropReason::k_wrong_service);
  WirePacket rc = Renamed(request, kFirst);
  rc.bytes[0] = static_cast<uint8_t>(Opcode::kRcSendOnly);
  std::swap(rc.meta.source, rc.meta.destination);
  Deliver(Renamed(rc, kFirst));
  EXPECT_EQ(target->last_drop, metrics::DropReason::k_wrong_service);
}

// With any loss, every message arrives once, in order among those for the same queue.
TEST_F(Xrc, Loss_OfEveryFewPackets_LosesNothing) {
  for (const int every : {6, 7, 9, 11}) {
    SCOPED_TRACE(every);
    packets = 0;
    constexpr uint64_t kMessages = 6;
    for (uint64_t id = 0; id < kMessages; ++id) {
      first->Post(id % 8);
      second->Post(id % 8);
      Post(ROCEGW_WR_SEND, kFirst, 100 + 300 * (id % 3), 0, 0, id);
      Post(ROCEGW_WR_RDMA_WRITE, kSecond, 500, QpHost::kBase + second->base + 0xF000, second->key);
      Post(ROCEGW_WR_RDMA_READ, kFirst, 900, QpHost::kBase + first->base, first->key);
      Post(ROCEGW_WR_SEND, kSecond, 100 + 300 * (id % 3), 0, 0, id);
    }
    Random random(TestSeed(93));
    Run([&](int) { return random.Below(static_cast<size_t>(every)) == 0; });
    const std::vector<rocegw_cqe> sent = source->Poll();
    EXPECT_EQ(sent.size(), 4 * kMessages);
    for (const rocegw_cqe& one : sent) ASSERT_EQ(one.status, 0);
    for (Owner* const owner : {first.get(), second.get()}) {
      const std::vector<rocegw_cqe> done = owner->Poll();
      ASSERT_EQ(done.size(), kMessages);
      for (uint64_t id = 0; id < kMessages; ++id) {
        EXPECT_EQ(done[id].status, 0);
        EXPECT_EQ(done[id].byte_length, 100 + 300 * (id % 3));
      }
    }
  }
}

}  // namespace
}  // namespace rocegw::testing::xrc
