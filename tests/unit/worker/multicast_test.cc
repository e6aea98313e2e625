// SPDX-License-Identifier: Apache-2.0
// Multicast datagrams: a copy to every attached queue pair, on any worker.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing::multicast {
namespace {

constexpr uint32_t kQkey = 0x1234;
const wire::Gid kGroup = wire::Gid::FromV4(0xEF010203);
const wire::Gid kOtherGroup = wire::Gid::FromV4(0xEF010204);

// Gateway 1 sends; gateway 0 has two workers.
class MulticastTest : public ::testing::Test {
 protected:
  explicit MulticastTest(const GatewayPairOptions& options = Options()) : gateways_(options) {
    for (int side = 0; side < 2; ++side) gids_[side].entries[0] = GatewayPair::GidOf(side);
  }
  static GatewayPairOptions Options() {
    GatewayPairOptions options;
    options.workers[0] = 2;
    return options;
  }

  // Returns a QPN whose bucket belongs to that worker of gateway 0.
  static uint32_t NumberOn(WorkerIndex worker, uint32_t number) {
    const port::SteeringTable steering(2);
    uint32_t bucket = 0;
    while (steering.WorkerOf(Qpn{bucket << 18 | number}) != worker) ++bucket;
    return bucket << 18 | number;
  }
  RingEnd& Datagrams(int side, WorkerIndex worker, uint32_t number, uint32_t qkey = kQkey,
                     uint32_t session = 1) {
    RingOptions ring;
    ring.type = verbs::QpType::kUd;
    ring.session = session;
    ring.qpn = side == 0 ? NumberOn(worker, number) : number;
    ring.handle = number;
    ends_.push_back(std::make_unique<RingEnd>(ring));
    RingEnd& end = *ends_.back();
    verbs::QpConfig config = end.Qp();
    config.gids = &gids_[side];
    EXPECT_EQ(gateways_.Call(side, worker, {0, worker::LinkCq{end.Cq()}}).error, 0);
    EXPECT_EQ(gateways_.Call(side, worker, {0, worker::LinkQp{config}}).error, 0);
    verbs::QpAttributes want;
    want.qkey = qkey;
    const auto step = [&](verbs::QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp body{
          SessionId{session}, Qpn{ring.qpn}, verbs::kAttrState | mask, want, {}};
      EXPECT_EQ(gateways_.Call(side, worker, {0, body}).error, 0);
    };
    step(verbs::QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(verbs::QpState::kRtr, 0);
    step(verbs::QpState::kRts, verbs::kAttrSqPsn);
    return end;
  }
  // Sends the message to both workers, as the control thread does.
  int Attach(const RingEnd& end, const wire::Gid& group, bool attached = true) {
    int error = 0;
    for (WorkerIndex w = 0; w < 2; ++w) {
      const worker::Multicast body{SessionId{1}, 0, group, Qpn{end.options().qpn}, attached};
      error = gateways_.Call(0, w, {0, body}).error;
    }
    return error;
  }
  void Post(RingEnd& end) {
    const uint32_t key = GatewayPair::KeyOf(0, end.options().session).value;
    ASSERT_TRUE(end.PostReceive(7, {{GatewayPair::kBase + 4096, 1024, key}}));
  }
  void PostSend(RingEnd& from, int side, const wire::Gid& group, uint32_t qkey, uint16_t flags) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_SEND;
    wqe.flags = flags;
    wqe.u.ud.remote_qpn = kMulticastQpn.value;
    wqe.u.ud.remote_qkey = qkey;
    std::memcpy(wqe.u.ud.av.dgid, group.bytes.data(), group.bytes.size());
    ASSERT_TRUE(from.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[side]}}));
  }
  void Send(RingEnd& from, int side, const wire::Gid& group, uint32_t qkey = kQkey) {
    PostSend(from, side, group, qkey, ROCEGW_WQE_SIGNALED);
    gateways_.Ring(side, from);
    for (int i = 0; i < 10; ++i) gateways_.Step();
    const auto sent = from.Poll();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].status, 0);
  }
  size_t Received(RingEnd& end) {
    const auto got = end.Poll();
    for (const rocegw_cqe& cqe : got) {
      EXPECT_EQ(cqe.status, 0);
      EXPECT_EQ(cqe.byte_length, 140u);
    }
    return got.size();
  }

  GatewayPair gateways_;
  verbs::GidTable gids_[2];
  std::vector<std::unique_ptr<RingEnd>> ends_;
};

// rdma-core's mckey destroys its queue pair at once: a device has sent the datagrams by then.
TEST_F(MulticastTest, SenderGoesAtOnce_WhatItPostedHasLeft) {
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd& member = Datagrams(0, 1, 3);
  ASSERT_EQ(Attach(member, kGroup), 0);
  for (int i = 0; i < 10; ++i) {
    Post(member);
    PostSend(sender, 1, kGroup, kQkey, 0);
  }
  const worker::UnlinkQp gone{SessionId{1}, Qpn{sender.options().qpn}};
  ASSERT_EQ(gateways_.Call(1, 0, {0, gone}).error, 0);
  for (int i = 0; i < 10; ++i) gateways_.Step();
  EXPECT_EQ(Received(member), 10u);
}

TEST_F(MulticastTest, EveryAttachedOne_OnEveryWorker_GetsACopy) {
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd& one = Datagrams(0, 0, 1);
  RingEnd& two = Datagrams(0, 0, 2);
  RingEnd& three = Datagrams(0, 1, 3);
  RingEnd& stranger = Datagrams(0, 1, 4);
  for (RingEnd* end : {&one, &two, &three, &stranger}) Post(*end);
  for (RingEnd* end : {&one, &two, &three}) ASSERT_EQ(Attach(*end, kGroup), 0);
  ASSERT_EQ(Attach(stranger, kOtherGroup), 0);
  std::memset(gateways_.memory(1).data(), 0x5C, 100);
  Send(sender, 1, kGroup);
  EXPECT_EQ(Received(one), 1u);
  EXPECT_EQ(Received(two), 1u);
  EXPECT_EQ(Received(three), 1u);
  EXPECT_EQ(Received(stranger), 0u);
  EXPECT_EQ(gateways_.memory(0)[4096 + 40 + 99], 0x5C);
  // The received payload starts with the destination address (IPv4: in the last 20 of 40 bytes).
  EXPECT_EQ(gateways_.memory(0)[4096 + 36], 0xEF);
}

TEST_F(MulticastTest, Detached_GetsNothingMore_OthersDo) {
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd& one = Datagrams(0, 0, 1);
  RingEnd& two = Datagrams(0, 1, 2);
  for (RingEnd* end : {&one, &two}) {
    Post(*end);
    ASSERT_EQ(Attach(*end, kGroup), 0);
  }
  ASSERT_EQ(Attach(one, kGroup, false), 0);
  EXPECT_EQ(Attach(one, kGroup, false), ENOENT);
  Send(sender, 1, kGroup);
  EXPECT_EQ(Received(one), 0u);
  EXPECT_EQ(Received(two), 1u);
  ASSERT_EQ(Attach(two, kGroup, false), 0);
  Post(two);
  Send(sender, 1, kGroup);
  EXPECT_EQ(Received(two), 0u);
}

TEST_F(MulticastTest, WrongKeyOrNoReceive_CostsNobodyElseHisCopy) {
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd& wrong_key = Datagrams(0, 0, 1, 99);
  RingEnd& no_receive = Datagrams(0, 0, 2);
  RingEnd& good = Datagrams(0, 0, 3);
  for (RingEnd* end : {&wrong_key, &no_receive, &good}) ASSERT_EQ(Attach(*end, kGroup), 0);
  Post(wrong_key);
  Post(good);
  Send(sender, 1, kGroup);
  EXPECT_EQ(Received(wrong_key), 0u);
  EXPECT_EQ(Received(no_receive), 0u);
  EXPECT_EQ(Received(good), 1u);
}

TEST_F(MulticastTest, QueuePairThatIsGone_IsPassedOver) {
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd& gone = Datagrams(0, 0, 1);
  RingEnd& good = Datagrams(0, 0, 2);
  for (RingEnd* end : {&gone, &good}) ASSERT_EQ(Attach(*end, kGroup), 0);
  Post(good);
  const worker::UnlinkQp unlink{SessionId{1}, Qpn{gone.options().qpn}};
  ASSERT_EQ(gateways_.Call(0, 0, {0, unlink}).error, 0);
  Send(sender, 1, kGroup);
  EXPECT_EQ(Received(good), 1u);
}

// Each measurement takes as long as a pool may be in debt, and more.
int64_t SlowClock() {
  static int64_t time = 0;
  return time += 50'000;
}

class CrowdedGroup : public MulticastTest {
 protected:
  CrowdedGroup() : MulticastTest(TwoPools()) {}
  static GatewayPairOptions TwoPools() {
    static tenant::Share first{nullptr};
    static tenant::Share second{nullptr};
    GatewayPairOptions options = Options();
    options.shares[0] = {&first, &second};
    options.clock = SlowClock;
    return options;
  }
};

// A pool with many members of a group takes no more than its share of the worker for them. Its
// first copy of a datagram is a packet like any other.
TEST_F(CrowdedGroup, PoolThatHasUsedUpItsTime_LosesCopies) {
  constexpr size_t kBurst = 16;
  RingEnd& sender = Datagrams(1, 0, 9);
  RingEnd* const members[] = {&Datagrams(0, 0, 1), &Datagrams(0, 0, 2),
                              &Datagrams(0, 0, 3, kQkey, 2)};
  for (RingEnd* const member : members) {
    ASSERT_EQ(Attach(*member, kGroup), 0);
    for (size_t i = 0; i < kBurst; ++i) Post(*member);
  }
  for (size_t i = 0; i < kBurst; ++i) PostSend(sender, 1, kGroup, kQkey, 0);
  gateways_.Ring(1, sender);
  for (int i = 0; i < 20; ++i) gateways_.Step();
  const uint64_t lost = gateways_.Count(0, &metrics::WorkerCounters::rx_dropped_packets);
  const size_t first = Received(*members[0]);
  const size_t second = Received(*members[1]);
  EXPECT_GE(first + second, kBurst);
  EXPECT_EQ(Received(*members[2]), kBurst) << "alone in its pool";
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(first + second + lost, 2 * kBurst);
}

}  // namespace
}  // namespace rocegw::testing::multicast
