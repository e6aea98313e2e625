// SPDX-License-Identifier: Apache-2.0
// Requests that ask for less order than verbs, on a channel between two gateways. Requests that
// allow it take effect before a hole is filled, the others wait; each takes effect exactly once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/support/network/gateway_pair.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

using verbs::ServiceMode;

constexpr uint8_t kFrameOpcode = 0xC0;
constexpr uint16_t kNone = ROCEGW_WQE_ORDER_NONE;
constexpr uint16_t kRelaxed = ROCEGW_WQE_ORDER_RELAXED;
constexpr uint16_t kStrong = 0;
constexpr uint64_t kTarget = 0x40000;
constexpr uint64_t kCounter = 0xC0000;
constexpr uint64_t kResult = 0xC1000;
constexpr uint64_t kInbox = 0x80000;

struct Ends {
  ServiceMode mode = ServiceMode::kByTarget;
  bool any_here = true;   // any completion order at the initiator
  bool any_there = true;  // and at the target
};

// An initiator and a target with receives. Requests are numbered from 0; the number is their wr_id,
// their immediate and their payload.
class Pair {
 public:
  explicit Pair(const Ends& setup, uint64_t seed = 1, uint32_t receives = 64)
      : script_(seed), gateways_(Options()) {
    RingOptions ring;
    ring.handle = 1;
    ring.qpn = 100;
    ring.service_mode = setup.mode;
    ring.any_completion_order = setup.any_here;
    a_ = &gateways_.AddQp(0, ring);
    ring.qpn = 200;
    ring.service_mode = ServiceMode::kByTarget;
    ring.any_completion_order = setup.any_there;
    b_ = &gateways_.AddQp(1, ring);
    gateways_.Connect(*a_, *b_, 3);
    for (uint32_t i = 0; i < receives; ++i) PostReceive();
    // Opens the channel and waits until nothing is in flight.
    Post(ROCEGW_WR_RDMA_WRITE_WITH_IMM, kStrong, 4);
    Run(20);
    EXPECT_EQ(there, std::vector<uint64_t>{0});
    EXPECT_EQ(here, std::vector<uint64_t>{0});
    here.clear();
    there.clear();
  }

  void PostReceive() {
    const uint64_t at = kInbox + (receive_ids_ % 64) * 4096;
    if (b_->PostReceive(receive_ids_, {{GatewayPair::kBase + at, 4096, GatewayPair::kKey[1]}}))
      ++receive_ids_;
    gateways_.Ring(1, *b_);
  }
  // Returns false if the queue is full.
  bool Post(uint8_t opcode, uint16_t flags, uint32_t length) {
    rocegw_send_wqe wqe{};
    wqe.wr_id = posted;
    wqe.opcode = opcode;
    wqe.flags = static_cast<uint16_t>(ROCEGW_WQE_SIGNALED | flags);
    wqe.imm_or_rkey = posted;
    const bool atomic = opcode == ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
    wqe.u.rdma.remote_address =
        GatewayPair::kBase + (atomic ? kCounter : kTarget + (posted % 64) * 4096);
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    wqe.u.rdma.compare_add = 1;
    const uint64_t at = atomic ? kResult + (posted % 64) * 8 : (posted % 64) * 4096;
    if (opcode != ROCEGW_WR_RDMA_READ && !atomic)
      std::memset(&gateways_.memory(0)[at], static_cast<int>(posted + 1), length);
    const rocegw_sge sge{GatewayPair::kBase + at, length, GatewayPair::kKey[0]};
    if (!a_->PostSend(wqe, {sge})) return false;
    ++posted;
    return true;
  }
  void Ring() { gateways_.Ring(0, *a_); }
  // Loses the next `times` frames to the target after skipping `skip`.
  void Lose(size_t skip, size_t times = 1) {
    TamperRule rule;
    rule.direction = 1;
    rule.opcode = kFrameOpcode;
    rule.skip = skip;
    rule.times = times;
    script_.Add(rule);
  }
  void Run(int steps) {
    Ring();
    for (int i = 0; i < steps; ++i) {
      gateways_.Step();
      Look();
    }
  }
  void Look() {
    for (const rocegw_cqe& cqe : b_->Poll()) {
      EXPECT_EQ(cqe.status, 0);
      there.push_back(cqe.imm_or_rkey);
      if (cqe.opcode == static_cast<uint8_t>(verbs::WcOpcode::kReceive)) {
        const uint8_t* const at = &gateways_.memory(1)[kInbox + (cqe.wr_id % 64) * 4096];
        EXPECT_TRUE(Filled(at, cqe.byte_length, cqe.imm_or_rkey)) << "SEND " << cqe.imm_or_rkey;
      } else {
        const uint64_t id = cqe.imm_or_rkey;
        const uint8_t* const at = &gateways_.memory(1)[kTarget + (id % 64) * 4096];
        EXPECT_TRUE(Filled(at, cqe.byte_length, id)) << "WRITE " << id;
      }
    }
    for (const rocegw_cqe& cqe : a_->Poll()) {
      EXPECT_EQ(cqe.status, 0) << "request " << cqe.wr_id;
      here.push_back(cqe.wr_id);
    }
  }
  uint64_t counter() {
    uint64_t value = 0;
    std::memcpy(&value, &gateways_.memory(1)[kCounter], sizeof value);
    return value;
  }
  GatewayPair& gateways() { return gateways_; }
  TamperScript& script() { return script_; }
  RingEnd& initiator() { return *a_; }

  uint32_t posted = 0;
  std::vector<uint64_t> here;   // requests in completion order
  std::vector<uint64_t> there;  // receives in completion order

 private:
  GatewayPairOptions Options() {
    GatewayPairOptions options;
    options.script = &script_;
    options.channels = true;
    // Rules of these tests match single frames.
    for (uint32_t& features : options.channel_features) features &= ~uint32_t{wire::kOptionBundles};
    return options;
  }
  static bool Filled(const uint8_t* at, uint32_t length, uint64_t id) {
    return std::all_of(at, at + length,
                       [&](uint8_t byte) { return byte == static_cast<uint8_t>(id + 1); });
  }

  TamperScript script_;
  GatewayPair gateways_;
  RingEnd* a_ = nullptr;
  RingEnd* b_ = nullptr;
  uint64_t receive_ids_ = 0;
};

using Ids = std::vector<uint64_t>;
constexpr uint8_t kWriteImm = ROCEGW_WR_RDMA_WRITE_WITH_IMM;
constexpr uint8_t kSend = ROCEGW_WR_SEND_WITH_IMM;

// Posts requests 1, 2, ... with these orders and loses the first one's frame.
Ids BehindAHole(const Ends& setup, uint8_t opcode, const std::vector<uint16_t>& orders,
                Ids* completions = nullptr) {
  Pair pair(setup);
  pair.Lose(0);
  for (const uint16_t order : orders) EXPECT_TRUE(pair.Post(opcode, order, 100));
  pair.Run(200);
  EXPECT_EQ(pair.here.size(), orders.size());
  if (completions != nullptr) *completions = pair.here;
  return pair.there;
}

TEST(Ordering, NoOrder_BehindAHole_TakesEffectBeforeItIsFilled) {
  EXPECT_EQ(BehindAHole({}, kWriteImm, {kStrong, kNone, kNone, kNone}), (Ids{2, 3, 4, 1}));
  EXPECT_EQ(BehindAHole({}, kSend, {kStrong, kNone, kNone, kNone}), (Ids{2, 3, 4, 1}));
}

TEST(Ordering, StrongOrder_BehindAHole_Waits) {
  EXPECT_EQ(BehindAHole({}, kWriteImm, {kStrong, kStrong, kStrong}), (Ids{1, 2, 3}));
  EXPECT_EQ(BehindAHole({}, kSend, {kNone, kStrong, kStrong}), (Ids{1, 2, 3}));
}

TEST(Ordering, RelaxedOrder_DoesNotWait_AndStrongOnesWaitForIt) {
  EXPECT_EQ(BehindAHole({}, kWriteImm, {kRelaxed, kRelaxed, kStrong, kRelaxed}), (Ids{2, 4, 1, 3}));
}

TEST(Ordering, FenceAtTheTarget_WaitsForThoseOfNoOrderToo) {
  Pair pair({});
  // The second frame of the first message is lost; the first frame says that it has no order.
  pair.Lose(1);
  ASSERT_TRUE(pair.Post(kWriteImm, kNone, 2000));
  ASSERT_TRUE(pair.Post(kWriteImm, kStrong, 100));
  ASSERT_TRUE(pair.Post(kWriteImm, ROCEGW_WQE_FENCE_TARGET, 100));
  pair.Run(200);
  EXPECT_EQ(pair.there, (Ids{2, 1, 3}));
}

TEST(Ordering, TargetWithCompletionsInOrder_CompletesInOrder) {
  EXPECT_EQ(BehindAHole({.any_there = false}, kWriteImm, {kStrong, kNone, kNone}), (Ids{1, 2, 3}));
  EXPECT_EQ(BehindAHole({.any_there = false}, kSend, {kStrong, kNone, kNone}), (Ids{1, 2, 3}));
}

TEST(Ordering, CompletionOrder_IsWhatTheQueuePairAskedFor) {
  Ids completions;
  BehindAHole({}, kWriteImm, {kStrong, kNone, kNone}, &completions);
  EXPECT_EQ(completions, (Ids{2, 3, 1}));
  BehindAHole({.any_here = false}, kWriteImm, {kStrong, kNone, kNone}, &completions);
  EXPECT_EQ(completions, (Ids{1, 2, 3}));
}

TEST(Ordering, ServiceByTheInitiator_HoldsStrongOnesBack) {
  EXPECT_EQ(BehindAHole({.mode = ServiceMode::kByInitiator}, kWriteImm,
                        {kRelaxed, kStrong, kNone, kRelaxed}),
            (Ids{1, 2, 3, 4}));  // no request passes one that is held back
  EXPECT_EQ(BehindAHole({.mode = ServiceMode::kByInitiator}, kWriteImm,
                        {kRelaxed, kNone, kRelaxed, kStrong}),
            (Ids{2, 3, 1, 4}));
}

TEST(Ordering, UnorderedService_HasNoOrderAtAll) {
  EXPECT_EQ(BehindAHole({.mode = ServiceMode::kUnordered}, kWriteImm, {kStrong, kStrong, kStrong}),
            (Ids{2, 3, 1}));
}

TEST(Ordering, FenceForAll_LeavesWhenAllBeforeItAreComplete) {
  Pair pair({});
  pair.Lose(0);
  ASSERT_TRUE(pair.Post(kWriteImm, kNone, 100));
  ASSERT_TRUE(pair.Post(kWriteImm, kNone | ROCEGW_WQE_FENCE_ALL, 100));
  pair.Run(200);
  EXPECT_EQ(pair.there, (Ids{1, 2}));
}

TEST(Ordering, OneSidedOfNoOrder_NeedsNoConsentOfTheTarget) {
  Pair pair({.any_there = false});
  pair.Lose(0);
  ASSERT_TRUE(pair.Post(kWriteImm, kStrong, 100));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pair.Post(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, kNone, 8));
  ASSERT_TRUE(pair.Post(ROCEGW_WR_RDMA_WRITE, kNone, 100));
  pair.Run(200);
  EXPECT_EQ(pair.here.back(), 1u);
  EXPECT_EQ(pair.counter(), 4u);
}

// A receiver that is not ready refuses the oldest message; messages that took effect do not take
// effect again.
TEST(Ordering, ReceiverNotReady_WhatIsDoneIsNotDoneAgain) {
  Pair pair({}, 1, 1);
  ASSERT_TRUE(pair.Post(kSend, kStrong, 100));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pair.Post(ROCEGW_WR_ATOMIC_FETCH_AND_ADD, kNone, 8));
  ASSERT_TRUE(pair.Post(ROCEGW_WR_RDMA_READ, kNone, 3000));
  pair.Run(100);
  EXPECT_EQ(pair.counter(), 4u);
  EXPECT_EQ(pair.here.size(), 5u);
  pair.PostReceive();
  pair.Run(200);
  EXPECT_EQ(pair.counter(), 4u);
  EXPECT_EQ(pair.there, Ids{1});
  EXPECT_EQ(pair.here.back(), 1u);
}

TEST(Ordering, WrongKeyBehindAHole_EndsTheQueuePairInItsTurn) {
  Pair pair({});
  pair.Lose(0);
  ASSERT_TRUE(pair.Post(kWriteImm, kStrong, 100));
  rocegw_send_wqe wqe{};
  wqe.wr_id = 99;
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.flags = ROCEGW_WQE_SIGNALED | kNone;
  wqe.u.rdma = {GatewayPair::kBase, 0, 0, 0xBAD, 0};
  RingEnd& a = pair.initiator();
  ASSERT_TRUE(a.PostSend(wqe, {{GatewayPair::kBase, 64, GatewayPair::kKey[0]}}));
  pair.Ring();
  std::vector<rocegw_cqe> all;
  for (int i = 0; i < 200; ++i) {
    pair.gateways().Step();
    for (const rocegw_cqe& cqe : a.Poll()) all.push_back(cqe);
  }
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].wr_id, 1u);
  EXPECT_EQ(all[0].status, 0);
  EXPECT_EQ(all[1].wr_id, 99u);
  EXPECT_EQ(all[1].status, static_cast<uint8_t>(verbs::WcStatus::kRemoteAccess));
}

// Any mix of orders, over a network with loss, duplicates and delay and with late receives, checked
// against the guarantees.
TEST(Ordering, AnyMix_KeepsItsPromises) {
  constexpr uint32_t kRequests = 60;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Random random(seed);
    Ends setup;
    setup.mode = static_cast<ServiceMode>(random.Below(4));
    setup.any_here = random.Coin();
    setup.any_there = random.Coin();
    Pair pair(setup, seed, 8);
    pair.script().Set({.drop = random.Below(3) * 0.05,
                       .delay = random.Below(2) * 0.1,
                       .duplicate = random.Below(2) * 0.05});
    struct Request {
      uint8_t opcode;
      uint16_t order;
    };
    std::vector<Request> requests{{kWriteImm, kStrong}};  // the request of the constructor
    uint64_t atomics = 0;
    const auto finished = [&] { return pair.here.size() == kRequests; };
    for (int step = 0; step < 20000 && !finished(); ++step) {
      while (requests.size() <= kRequests && random.Coin()) {
        constexpr uint8_t kOpcodes[] = {kWriteImm, kSend, ROCEGW_WR_RDMA_WRITE, ROCEGW_WR_RDMA_READ,
                                        ROCEGW_WR_ATOMIC_FETCH_AND_ADD};
        constexpr uint16_t kOrders[] = {kNone, kRelaxed, kStrong, ROCEGW_WQE_FENCE_TARGET};
        Request request{kOpcodes[random.Below(5)], kOrders[random.Below(4)]};
        const bool atomic = request.opcode == ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
        uint16_t flags = request.order;
        if (random.Below(10) == 0) flags |= ROCEGW_WQE_FENCE_ALL;
        if (random.Below(10) == 0) flags |= ROCEGW_WQE_FENCE;
        const auto length = static_cast<uint32_t>(atomic ? 8 : random.Below(4097));
        if (!pair.Post(request.opcode, flags, length)) break;
        requests.push_back(request);
        atomics += atomic ? 1 : 0;
      }
      if (random.Below(4) == 0) pair.PostReceive();
      pair.Run(1);
      if (::testing::Test::HasFailure()) return;
    }
    ASSERT_TRUE(finished()) << pair.here.size() << " of " << kRequests;
    pair.Run(50);
    EXPECT_EQ(pair.counter(), atomics);
    Ids once = pair.here;
    std::sort(once.begin(), once.end());
    for (uint32_t i = 0; i < kRequests; ++i) ASSERT_EQ(once[i], i + 1);
    if (!setup.any_here) {
      EXPECT_EQ(pair.here, once);
    }
    Ids expected;
    for (uint32_t i = 1; i <= kRequests; ++i)
      if (requests[i].opcode == kWriteImm || requests[i].opcode == kSend) expected.push_back(i);
    Ids received = pair.there;
    std::sort(received.begin(), received.end());
    ASSERT_EQ(received, expected);
    if (!setup.any_there) {
      EXPECT_EQ(pair.there, expected);
    }
    if (setup.mode == ServiceMode::kUnordered) continue;
    std::set<uint64_t> before;
    for (const uint64_t id : pair.there) {
      const uint16_t order = requests[id].order;
      if (order == kStrong || order == ROCEGW_WQE_FENCE_TARGET) {
        for (const uint64_t other : expected) {
          const bool counts = order == ROCEGW_WQE_FENCE_TARGET || requests[other].order != kNone;
          if (other >= id || !counts) continue;
          EXPECT_TRUE(before.contains(other)) << id << " came before " << other;
        }
      }
      before.insert(id);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace rocegw::testing
