// SPDX-License-Identifier: Apache-2.0
// Completions of a program's requests after the daemon's death: each request without a completion
// gets one, once, in whatever state the daemon died.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <random>
#include <set>
#include <vector>

#include "tests/unit/client/rings/ring_memory.h"

namespace rocegw::client {
namespace {

using ::rocegw::testing::RingMemory;

class FlushTest : public ::testing::Test {
 protected:
  int Send(uint64_t wr_id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr{};
    wr.wr_id = wr_id;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = flags;
    ibv_send_wr* bad = nullptr;
    return PostSend(memory_.qp().send, &wr, &bad);
  }
  int Receive(uint64_t wr_id) {
    ibv_recv_wr wr{};
    wr.wr_id = wr_id;
    ibv_recv_wr* bad = nullptr;
    return PostReceive(memory_.qp().receive, &wr, &bad);
  }
  // Acts as the daemon.
  void Release(uint32_t below) { memory_.status().sq_released = below; }
  void CompleteSend(uint32_t index) {
    rocegw_cqe cqe{};
    cqe.wr_id = memory_.SendSlot(index).wr_id;
    cqe.ring_slot = index;
    memory_.Complete(0, cqe);
  }
  void CompleteReceive(uint32_t index) {
    rocegw_cqe cqe{};
    cqe.wr_id = memory_.ReceiveSlot(index).wr_id;
    cqe.ring_slot = index;
    cqe.flags = ROCEGW_CQE_RECEIVE;
    memory_.Complete(0, cqe);
  }
  std::vector<uint64_t> Polled(int most = 32) {
    ibv_wc wc[32];
    const int got = memory_.cq().Poll(most, wc);
    return Ids(wc, got, IBV_WC_SUCCESS);
  }
  std::vector<uint64_t> Flushed(int most = 32) {
    ibv_wc wc[32];
    const int got = memory_.cq().Flush(most, wc);
    return Ids(wc, got, IBV_WC_WR_FLUSH_ERR);
  }

  RingMemory memory_;
  using IdList = std::vector<uint64_t>;

 private:
  std::vector<uint64_t> Ids(const ibv_wc* wc, int count, ibv_wc_status status) {
    std::vector<uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(status, wc[i].status);
      EXPECT_EQ(memory_.qp().qpn, wc[i].qp_num);
      ids.push_back(wc[i].wr_id);
    }
    return ids;
  }
};

TEST_F(FlushTest, Quiet_AfterManyEmptyPolls_NowAndThen) {
  int times = 0;
  for (int i = 0; i < 4096; ++i) {
    bool quiet = false;
    ibv_wc wc;
    EXPECT_EQ(0, memory_.cq().Poll(1, &wc, &quiet));
    times += quiet ? 1 : 0;
  }
  EXPECT_EQ(4, times);
}

TEST_F(FlushTest, NothingPosted_Nothing) { EXPECT_EQ(IdList(), Flushed()); }

TEST_F(FlushTest, SendsAndReceives_InOrderAndOnce) {
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(0, Send(id));
  for (uint64_t id = 11; id <= 13; ++id) ASSERT_EQ(0, Receive(id));
  EXPECT_EQ(IdList({1, 2}), Flushed(2));
  EXPECT_EQ(IdList({3, 11}), Flushed(2));
  EXPECT_EQ(IdList({12, 13}), Flushed(2));
  EXPECT_EQ(IdList(), Flushed());
}

TEST_F(FlushTest, WhatWasPolled_DoesNotComeAgain) {
  for (uint64_t id = 1; id <= 4; ++id) ASSERT_EQ(0, Send(id));
  for (uint64_t id = 11; id <= 13; ++id) ASSERT_EQ(0, Receive(id));
  Release(2);
  CompleteSend(0);
  CompleteSend(1);
  CompleteReceive(0);
  EXPECT_EQ(IdList({1, 2, 11}), Polled());
  EXPECT_EQ(IdList({3, 4, 12, 13}), Flushed());
}

// Unsignaled requests that were done have no completion; the others have this one.
TEST_F(FlushTest, Unsignaled_OnlyWhereNotDone) {
  ASSERT_EQ(0, Send(1, 0));
  ASSERT_EQ(0, Send(2, 0));
  ASSERT_EQ(0, Send(3, 0));
  Release(2);
  EXPECT_EQ(IdList({3}), Flushed());
}

// The daemon stores the index before the completion: it may die in between.
TEST_F(FlushTest, ReleasedWithoutCompletion_IsFlushed) {
  ASSERT_EQ(0, Send(1));
  ASSERT_EQ(0, Send(2, 0));
  ASSERT_EQ(0, Send(3));
  Release(3);
  CompleteSend(0);
  EXPECT_EQ(IdList({1}), Polled());
  EXPECT_EQ(IdList({3}), Flushed());
}

TEST_F(FlushTest, PostedAfterwards_AreFlushedToo) {
  ASSERT_EQ(0, Send(1));
  EXPECT_EQ(IdList({1}), Flushed());
  ASSERT_EQ(0, Send(2));
  ASSERT_EQ(0, Receive(12));
  EXPECT_EQ(IdList({2, 12}), Flushed());
}

// Completions that a daemon writes at the end of a session, after the program has noticed it.
TEST_F(FlushTest, LateCompletions_AreNotDeliveredASecondTime) {
  ASSERT_EQ(0, Send(1));
  EXPECT_EQ(IdList({1}), Flushed());
  CompleteSend(0);
  bool quiet = false;
  ibv_wc wc;
  EXPECT_EQ(0, memory_.cq().Poll(1, &wc, &quiet));
  EXPECT_TRUE(quiet);
  EXPECT_EQ(IdList(), Flushed());
}

TEST_F(FlushTest, OtherQueue_IsNotFlushedHere) {
  memory_.qp().receive_cq = nullptr;
  ASSERT_EQ(0, Send(1));
  ASSERT_EQ(0, Receive(11));
  EXPECT_EQ(IdList({1}), Flushed());
}

// Any number of rounds through the ring, completions in order or not, death at any point: every
// signaled request and every receive completes exactly once.
TEST_F(FlushTest, EveryRequest_CompletesOnce) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    RingMemory memory;
    const bool any_order = seed % 2 == 0;
    if (any_order) {
      ASSERT_EQ(0, ExpectSendsInAnyOrder(memory.qp()));
      ASSERT_EQ(0, ExpectAnyOrder(memory.qp().receive));
    }
    std::multiset<uint64_t> seen;
    std::set<uint64_t> signaled;
    std::set<uint64_t> all;
    std::vector<uint32_t> open;      // sends that the daemon has not done
    std::vector<uint32_t> receives;  // receives that it has not completed
    std::set<uint32_t> done;         // done behind an open one
    uint32_t sends = 0;
    uint32_t receives_posted = 0;
    uint32_t released = 0;
    const uint32_t steps = 20 + random() % 200;
    const auto poll = [&](int count) {
      ibv_wc wc[8];
      const int got = memory.cq().Poll(count, wc);
      for (int i = 0; i < got; ++i) seen.insert(wc[i].wr_id);
    };
    for (uint32_t step = 0; step < steps; ++step) {
      switch (random() % 5) {
        case 0: {
          ibv_send_wr wr{};
          wr.wr_id = 1000 + sends;
          wr.opcode = IBV_WR_SEND;
          wr.send_flags = random() % 3 != 0 ? IBV_SEND_SIGNALED : 0;
          ibv_send_wr* bad = nullptr;
          if (PostSend(memory.qp().send, &wr, &bad) != 0) break;
          all.insert(wr.wr_id);
          if (wr.send_flags != 0) signaled.insert(wr.wr_id);
          open.push_back(sends++);
          break;
        }
        case 1: {
          ibv_recv_wr wr{};
          wr.wr_id = 1'000'000 + receives_posted;
          ibv_recv_wr* bad = nullptr;
          if (PostReceive(memory.qp().receive, &wr, &bad) != 0) break;
          signaled.insert(wr.wr_id);
          receives.push_back(receives_posted++);
          break;
        }
        case 2: {
          if (open.empty()) break;
          const size_t which = any_order ? random() % open.size() : 0;
          const uint32_t index = open[which];
          open.erase(open.begin() + static_cast<ptrdiff_t>(which));
          done.insert(index);
          while (done.erase(released) != 0) ++released;
          memory.status().sq_released = released;
          const bool dies_in_between = step + 1 == steps;
          if (signaled.contains(1000 + index) && !dies_in_between) {
            rocegw_cqe cqe{};
            cqe.wr_id = 1000 + index;
            cqe.ring_slot = index;
            memory.Complete(0, cqe);
          }
          break;
        }
        case 3: {
          if (receives.empty()) break;
          const size_t which = any_order ? random() % receives.size() : 0;
          rocegw_cqe cqe{};
          cqe.ring_slot = receives[which];
          cqe.wr_id = 1'000'000 + cqe.ring_slot;
          cqe.flags = ROCEGW_CQE_RECEIVE;
          receives.erase(receives.begin() + static_cast<ptrdiff_t>(which));
          memory.Complete(0, cqe);
          break;
        }
        default:
          poll(1 + static_cast<int>(random() % 8));
      }
    }
    for (int i = 0; i < 16; ++i) poll(8);
    const size_t before = seen.size();
    ibv_wc wc[3];
    for (int got = 1; got != 0;) {
      got = memory.cq().Flush(3, wc);
      for (int i = 0; i < got; ++i) seen.insert(wc[i].wr_id);
    }
    EXPECT_GE(seen.size(), before);
    for (const uint64_t id : signaled) EXPECT_EQ(1u, seen.count(id)) << id;
    for (const uint64_t id : seen) EXPECT_EQ(1u, seen.count(id)) << id;
    // Unsignaled requests appear only if they were not done.
    for (const uint32_t index : open) EXPECT_EQ(1u, seen.count(1000 + index)) << index;
    free(memory.qp().receive.early);
    free(memory.qp().sends_polled_at);
  }
}

}  // namespace
}  // namespace rocegw::client
