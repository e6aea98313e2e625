// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/client/rings/ring_memory.h"

namespace rocegw::client {
namespace {

using ::rocegw::testing::RingMemory;

rocegw_cqe Sent(uint64_t wr_id) {
  rocegw_cqe cqe{};
  cqe.wr_id = wr_id;
  cqe.opcode = IBV_WC_SEND;
  return cqe;
}

rocegw_cqe Received(uint32_t slot, uint32_t length, uint16_t flags = 0) {
  rocegw_cqe cqe{};
  cqe.wr_id = slot;
  cqe.opcode = IBV_WC_RECV;
  cqe.byte_length = length;
  cqe.ring_slot = slot;
  cqe.flags = static_cast<uint16_t>(ROCEGW_CQE_RECEIVE | flags);
  return cqe;
}

int PostReceives(RingMemory& memory, ibv_sge* sges, int sge_count, int times = 1) {
  ibv_recv_wr wr{};
  wr.sg_list = sges;
  wr.num_sge = sge_count;
  ibv_recv_wr* bad = nullptr;
  int error = 0;
  for (int i = 0; i < times && error == 0; ++i) error = PostReceive(memory.qp().receive, &wr, &bad);
  return error;
}

TEST(CompletionRings, Poll_EmptyQueue_FindsNothing) {
  RingMemory memory;
  ibv_wc wc[4];
  EXPECT_EQ(0, memory.cq().Poll(4, wc));
}

TEST(CompletionRings, Poll_AllFields_AreCarriedOver) {
  RingMemory memory;
  rocegw_cqe cqe = Sent(42);
  cqe.status = IBV_WC_RETRY_EXC_ERR;
  cqe.vendor_error = 7;
  cqe.opcode = IBV_WC_RDMA_READ;
  cqe.byte_length = 4096;
  cqe.imm_or_rkey = 0xdeadbeef;
  cqe.source_qpn = 0x99;
  cqe.flags = ROCEGW_CQE_WITH_IMM | ROCEGW_CQE_SOLICITED;
  memory.Complete(0, cqe);
  ibv_wc wc[2];
  ASSERT_EQ(1, memory.cq().Poll(2, wc));
  EXPECT_EQ(42u, wc[0].wr_id);
  EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, wc[0].status);
  EXPECT_EQ(7u, wc[0].vendor_err);
  EXPECT_EQ(IBV_WC_RDMA_READ, wc[0].opcode);
  EXPECT_EQ(4096u, wc[0].byte_len);
  EXPECT_EQ(0xdeadbeefu, wc[0].imm_data);
  EXPECT_EQ(0x1234u, wc[0].qp_num);
  EXPECT_EQ(0x99u, wc[0].src_qp);
  EXPECT_EQ(static_cast<unsigned>(IBV_WC_WITH_IMM), wc[0].wc_flags);
  EXPECT_EQ(1u, memory.consumer(0));
}

// UCX derives the length of the GIDs in a datagram's header from it, as NVIDIA's RNICs report it.
TEST(CompletionRings, Poll_ServiceLevel_SaysWhichPacketADatagramCameIn) {
  RingMemory memory;
  ibv_sge sge{};
  ASSERT_EQ(0, PostReceives(memory, &sge, 0, 3));
  memory.Complete(0, Received(0, 40, ROCEGW_CQE_GRH | ROCEGW_CQE_IPV4));
  memory.Complete(0, Received(1, 40, ROCEGW_CQE_GRH));
  memory.Complete(0, Received(2, 40, 0));
  ibv_wc wc[3];
  ASSERT_EQ(3, memory.cq().Poll(3, wc));
  EXPECT_EQ(0xa, wc[0].sl);
  EXPECT_EQ(0x9, wc[1].sl);
  EXPECT_EQ(0, wc[2].sl) << "of a connection";
}

TEST(CompletionRings, Poll_TwoWorkers_TakesTurnsAndKeepsEachOrder) {
  RingMemory memory;
  for (uint64_t i = 0; i < 8; ++i) {
    memory.Complete(0, Sent(i));
    memory.Complete(1, Sent(100 + i));
  }
  std::vector<uint64_t> order;
  ibv_wc wc[4];
  for (int polls = 0; polls < 4; ++polls) {
    ASSERT_EQ(4, memory.cq().Poll(4, wc));
    for (const ibv_wc& one : wc) order.push_back(one.wr_id);
  }
  const std::vector<uint64_t> expected = {0, 1, 2, 3, 100, 101, 102, 103,
                                          4, 5, 6, 7, 104, 105, 106, 107};
  EXPECT_EQ(expected, order);
  EXPECT_EQ(8u, memory.consumer(0));
  EXPECT_EQ(8u, memory.consumer(1));
}

TEST(CompletionRings, Poll_CountOfOne_StarvesNobody) {
  RingMemory memory;
  for (uint64_t i = 0; i < 4; ++i) memory.Complete(0, Sent(i));
  memory.Complete(1, Sent(100));
  ibv_wc wc;
  bool seen = false;
  for (int polls = 0; polls < 2; ++polls) {
    ASSERT_EQ(1, memory.cq().Poll(1, &wc));
    seen = seen || wc.wr_id == 100;
  }
  EXPECT_TRUE(seen);
}

TEST(CompletionRings, Poll_QpThatIsGone_IsSkippedButConsumed) {
  RingMemory memory;
  rocegw_cqe other = Sent(1);
  other.qpn = 0x9999;
  memory.Complete(0, other);
  rocegw_cqe reused_number = Sent(2);
  reused_number.qp_handle = 78;
  memory.Complete(0, reused_number);
  memory.Complete(0, Sent(3));
  ibv_wc wc[4];
  ASSERT_EQ(1, memory.cq().Poll(4, wc));
  EXPECT_EQ(3u, wc[0].wr_id);
  EXPECT_EQ(3u, memory.consumer(0));
  memory.Complete(0, Sent(4));
  memory.cq().Remove(&memory.qp());
  EXPECT_EQ(0, memory.cq().Poll(4, wc));
  EXPECT_EQ(4u, memory.consumer(0));
}

TEST(CompletionRings, Poll_PayloadInRing_IsScatteredOverTheReceive) {
  RingMemory memory;
  std::vector<uint8_t> first(10), second(100);
  memory.keys().Insert(
      1, {reinterpret_cast<uint64_t>(first.data()), first.size(),
          reinterpret_cast<uint64_t>(first.data()), RingMemory::kPd, IBV_ACCESS_LOCAL_WRITE});
  memory.keys().Insert(2, {0x5000, second.size(), reinterpret_cast<uint64_t>(second.data()),
                           RingMemory::kPd, IBV_ACCESS_LOCAL_WRITE});
  ibv_sge sges[3] = {{reinterpret_cast<uint64_t>(first.data()), 10, 1}, {0, 0, 0}, {0x5002, 90, 2}};
  ASSERT_EQ(0, PostReceives(memory, sges, 3));
  EXPECT_EQ(1u, memory.control().rq_producer);
  EXPECT_EQ(3u, memory.ReceiveSlot(0).num_sge);
  for (int i = 0; i < 30; ++i) memory.ReceivePayload(0)[i] = static_cast<uint8_t>(i + 1);
  memory.Complete(1, Received(0, 30, ROCEGW_CQE_PAYLOAD_IN_RING | ROCEGW_CQE_GRH));
  ibv_wc wc;
  ASSERT_EQ(1, memory.cq().Poll(1, &wc));
  EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
  EXPECT_EQ(30u, wc.byte_len);
  EXPECT_EQ(static_cast<unsigned>(IBV_WC_GRH), wc.wc_flags);
  EXPECT_EQ(1, first[0]);
  EXPECT_EQ(10, first[9]);
  EXPECT_EQ(0, second[1]);
  EXPECT_EQ(11, second[2]);
  EXPECT_EQ(30, second[21]);
  EXPECT_EQ(0, second[22]);
}

TEST(CompletionRings, Poll_PayloadThatCannotBePlaced_FailsThatReceiveOnly) {
  RingMemory memory;
  std::vector<uint8_t> buffer(64);
  const auto address = reinterpret_cast<uint64_t>(buffer.data());
  memory.keys().Insert(1, {address, 64, address, RingMemory::kPd, IBV_ACCESS_LOCAL_WRITE});
  memory.keys().Insert(2, {address, 64, address, RingMemory::kPd, 0});
  ibv_sge good = {address, 64, 1};
  ibv_sge read_only = {address, 64, 2};
  ibv_sge unknown = {address, 64, 3};
  ibv_sge small = {address, 4, 1};
  for (ibv_sge* sge : {&read_only, &unknown, &small, &good})
    ASSERT_EQ(0, PostReceives(memory, sge, 1));
  for (uint32_t i = 0; i < 4; ++i) {
    memory.Complete(0, Received(i, 8, ROCEGW_CQE_PAYLOAD_IN_RING));
  }
  memory.Complete(0, Received(4, 129, ROCEGW_CQE_PAYLOAD_IN_RING));  // longer than a slot
  ibv_wc wc[5];
  ASSERT_EQ(5, memory.cq().Poll(5, wc));
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[0].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[1].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[2].status);
  EXPECT_EQ(IBV_WC_SUCCESS, wc[3].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[4].status);
}

TEST(ReceiveRing, Payload_ForOnDemandMemory_IsCopiedWhereThereIsSome) {
  RingMemory memory;
  std::vector<uint8_t> buffer(64);
  memory.keys().Insert(
      1, {0, UINT64_MAX, 0, RingMemory::kPd, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND});
  memory.keys().Insert(2, {0, UINT64_MAX, 0, RingMemory::kPd, IBV_ACCESS_ON_DEMAND});
  const auto address = reinterpret_cast<uint64_t>(buffer.data());
  ibv_sge good = {address, 64, 1};
  ibv_sge nowhere = {4096, 64, 1};
  ibv_sge read_only = {address, 64, 2};
  for (ibv_sge* sge : {&good, &nowhere, &read_only}) ASSERT_EQ(0, PostReceives(memory, sge, 1));
  memory.ReceivePayload(0)[7] = 9;
  for (uint32_t i = 0; i < 3; ++i) {
    memory.Complete(0, Received(i, 8, ROCEGW_CQE_PAYLOAD_IN_RING));
  }
  ibv_wc wc[3];
  ASSERT_EQ(3, memory.cq().Poll(3, wc));
  EXPECT_EQ(IBV_WC_SUCCESS, wc[0].status);
  EXPECT_EQ(9, buffer[7]);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[1].status);
  EXPECT_EQ(IBV_WC_LOC_PROT_ERR, wc[2].status);
}

TEST(ReceiveRing, PostReceive_FullQueue_IsFreedByPollingNotByTheDaemon) {
  RingMemory memory;
  ASSERT_EQ(0, PostReceives(memory, nullptr, 0, 8));
  EXPECT_EQ(ENOMEM, PostReceives(memory, nullptr, 0));
  memory.status().rq_released = 8;
  EXPECT_EQ(ENOMEM, PostReceives(memory, nullptr, 0)) << "payloads still lie in the slots";
  memory.Complete(0, Received(0, 0));
  ibv_wc wc;
  ASSERT_EQ(1, memory.cq().Poll(1, &wc));
  EXPECT_EQ(0, PostReceives(memory, nullptr, 0));
  EXPECT_EQ(ENOMEM, PostReceives(memory, nullptr, 0));
}

TEST(ReceiveRing, PostReceive_RingsOnlyForAStarvedOrBrokenQueue) {
  RingMemory memory;
  ASSERT_EQ(0, PostReceives(memory, nullptr, 0));
  EXPECT_FALSE(memory.TakeDoorbell());
  memory.status().rq_starved = 1;
  ASSERT_EQ(0, PostReceives(memory, nullptr, 0));
  EXPECT_TRUE(memory.TakeDoorbell());
  memory.status().rq_starved = 0;
  memory.status().state = IBV_QPS_ERR;
  ASSERT_EQ(0, PostReceives(memory, nullptr, 0));
  EXPECT_TRUE(memory.TakeDoorbell()) << "it has to be flushed";
}

TEST(ReceiveRing, PostReceive_BadRequests_AreRefused) {
  RingMemory memory;
  ibv_sge sges[4] = {};
  ibv_recv_wr wrs[2] = {};
  wrs[0].next = &wrs[1];
  wrs[1].sg_list = sges;
  wrs[1].num_sge = 4;
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, PostReceive(memory.qp().receive, wrs, &bad));
  EXPECT_EQ(&wrs[1], bad);
  EXPECT_EQ(1u, memory.control().rq_producer);
  memory.qp().receive.state = IBV_QPS_RESET;
  EXPECT_EQ(EINVAL, PostReceives(memory, nullptr, 0));
}

TEST(CompletionRings, Purge_ForgetsOneQpsOldCompletions) {
  RingMemory memory;
  memory.Complete(1, Sent(1));
  memory.Complete(1, Received(0, 0));
  memory.cq().Purge(&memory.qp(), true, true);
  memory.Complete(1, Sent(2));
  memory.Complete(1, Received(5, 0));
  ibv_wc wc[4];
  ASSERT_EQ(2, memory.cq().Poll(4, wc));
  EXPECT_EQ(2u, wc[0].wr_id);
  EXPECT_EQ(5u, wc[1].wr_id);
  EXPECT_EQ(6u, memory.qp().receive.polled);
}

TEST(CompletionRings, Purge_SendsOnly_KeepsReceives) {
  RingMemory memory;
  memory.Complete(1, Sent(1));
  memory.Complete(1, Received(0, 0));
  memory.cq().Purge(&memory.qp(), true, false);
  ibv_wc wc[4];
  ASSERT_EQ(1, memory.cq().Poll(4, wc));
  EXPECT_EQ(IBV_WC_RECV, wc[0].opcode);
}

TEST(CompletionRings, Arm_AnyIsNotWeakenedBySolicited) {
  RingMemory memory;
  memory.cq().Arm(true);
  EXPECT_EQ(ROCEGW_CQ_ARM_SOLICITED, memory.cq_control().arm);
  memory.cq().Arm(false);
  EXPECT_EQ(ROCEGW_CQ_ARM_ANY, memory.cq_control().arm);
  memory.cq().Arm(true);
  EXPECT_EQ(ROCEGW_CQ_ARM_ANY, memory.cq_control().arm);
}

TEST(CompletionRings, AddRemove_ManyQps_FindsExactlyThosePresent) {
  RingMemory memory;
  const unsigned seed = 20261121;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<QpRings> qps(300);
  for (size_t i = 0; i < qps.size(); ++i) {
    qps[i] = {};
    qps[i].qpn = static_cast<uint32_t>(0x10000 + i * 64);
    qps[i].handle = static_cast<uint32_t>(1000 + i);
  }
  std::vector<bool> present(qps.size());
  for (int step = 0; step < 5000; ++step) {
    const size_t i = random() % qps.size();
    if (present[i]) {
      memory.cq().Remove(&qps[i]);
    } else {
      ASSERT_EQ(0, memory.cq().Add(&qps[i], true, true));
    }
    present[i] = !present[i];
    const size_t probe = random() % qps.size();
    rocegw_cqe cqe = Sent(probe);
    cqe.qpn = qps[probe].qpn;
    cqe.qp_handle = qps[probe].handle;
    memory.Complete(0, cqe);
    ibv_wc wc;
    ASSERT_EQ(present[probe] ? 1 : 0, memory.cq().Poll(1, &wc));
  }
  size_t count = 0;
  memory.cq().ForEachQp([&](QpRings&) { ++count; });
  EXPECT_EQ(1u + static_cast<size_t>(std::accumulate(present.begin(), present.end(), 0)), count);
}

// Two workers complete, two threads poll: every completion is seen exactly once.
TEST(CompletionRings, Poll_ManyThreads_SeeEachCompletionOnce) {
  RingMemory memory;
  constexpr uint64_t kPerWorker = 20000;
  std::atomic<uint64_t> sum = 0;
  std::atomic<uint64_t> seen = 0;
  std::vector<std::thread> pollers;
  for (int t = 0; t < 2; ++t) {
    pollers.emplace_back([&] {
      ibv_wc wc[4];
      while (seen < 2 * kPerWorker) {
        const int got = memory.cq().Poll(4, wc);
        for (int i = 0; i < got; ++i) sum += wc[i].wr_id;
        seen += static_cast<uint64_t>(got);
        if (got == 0) std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> workers;
  workers.reserve(2);
  for (uint32_t w = 0; w < 2; ++w) {
    workers.emplace_back([&, w] {
      for (uint64_t i = 1; i <= kPerWorker; ++i) {
        while (i - __atomic_load_n(&memory.cq_control().worker[w].consumer, __ATOMIC_ACQUIRE) >
               16) {
          std::this_thread::yield();
        }
        memory.Complete(w, Sent(i));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (std::thread& poller : pollers) poller.join();
  EXPECT_EQ(2 * kPerWorker, seen);
  EXPECT_EQ(kPerWorker * (kPerWorker + 1), sum);
}

}  // namespace
}  // namespace rocegw::client
