// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "gateway/client/rings/address_handle.h"
#include "tests/unit/client/rings/ring_memory.h"

namespace rocegw::client {
namespace {

using ::rocegw::testing::RingMemory;

struct Buffer {
  explicit Buffer(RingMemory& memory, uint32_t lkey = 0x42,
                  uint32_t access = IBV_ACCESS_LOCAL_WRITE)
      : key(lkey), bytes(4096) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + 3);
    memory.keys().Insert(lkey, {address(), bytes.size(), address(), RingMemory::kPd, access});
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes.data()); }
  ibv_sge Sge(uint64_t offset, uint32_t length) const { return {address() + offset, length, key}; }
  uint32_t key;
  std::vector<uint8_t> bytes;
};

ibv_send_wr Request(ibv_wr_opcode opcode, ibv_sge* sges, int count, unsigned flags = 0) {
  ibv_send_wr wr{};
  wr.wr_id = 0x1122334455667788;
  wr.opcode = opcode;
  wr.sg_list = sges;
  wr.num_sge = count;
  wr.send_flags = flags;
  return wr;
}

TEST(SendRing, PostSend_LargeWrite_DescribesItAndCopiesNothing) {
  RingMemory memory;
  const Buffer buffer(memory);
  ibv_sge sges[2] = {buffer.Sge(0, 1000), buffer.Sge(2000, 24)};
  ibv_send_wr wr = Request(IBV_WR_RDMA_WRITE_WITH_IMM, sges, 2, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  wr.imm_data = 0xa1b2c3d4;
  wr.wr.rdma.remote_addr = 0x7000;
  wr.wr.rdma.rkey = 99;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));

  EXPECT_EQ(1u, memory.control().sq_producer);
  const rocegw_send_wqe& wqe = memory.SendSlot(0);
  EXPECT_EQ(0x1122334455667788u, wqe.wr_id);
  EXPECT_EQ(ROCEGW_WR_RDMA_WRITE_WITH_IMM, wqe.opcode);
  EXPECT_EQ(2, wqe.num_sge);
  EXPECT_EQ(ROCEGW_WQE_SIGNALED | ROCEGW_WQE_FENCE, wqe.flags);
  EXPECT_EQ(0xa1b2c3d4u, wqe.imm_or_rkey);
  EXPECT_EQ(0x7000u, wqe.u.rdma.remote_address);
  EXPECT_EQ(99u, wqe.u.rdma.rkey);
  EXPECT_EQ(buffer.address() + 2000, memory.SendSges(0)[1].address);
  EXPECT_EQ(24u, memory.SendSges(0)[1].length);
  EXPECT_EQ(buffer.key, memory.SendSges(0)[1].lkey);
  EXPECT_TRUE(memory.TakeDoorbell());
}

TEST(SendRing, PostSend_SmallRegisteredPayload_IsCopiedWithItsKeys) {
  RingMemory memory;
  const Buffer buffer(memory);
  ibv_sge sges[2] = {buffer.Sge(10, 100), buffer.Sge(500, 28)};
  ibv_send_wr wr = Request(IBV_WR_SEND, sges, 2);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(ROCEGW_WQE_COPIED, memory.SendSlot(0).flags);
  EXPECT_EQ(2, memory.SendSlot(0).num_sge);
  EXPECT_EQ(buffer.key, memory.SendSges(0)[0].lkey);
  EXPECT_EQ(0, memcmp(memory.SendPayload(0), buffer.bytes.data() + 10, 100));
  EXPECT_EQ(0, memcmp(memory.SendPayload(0) + 100, buffer.bytes.data() + 500, 28));
}

TEST(SendRing, PostSend_OnDemandMemory_IsNotTouchedHere) {
  RingMemory memory;
  memory.keys().Insert(0x66, {0, UINT64_MAX, 0, RingMemory::kPd, IBV_ACCESS_ON_DEMAND});
  ibv_sge sge = {4096, 8, 0x66};  // unmapped address
  ibv_send_wr wr = Request(IBV_WR_SEND, &sge, 1);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(0, memory.SendSlot(0).flags);
  EXPECT_EQ(4096u, memory.SendSges(0)[0].address);
}

TEST(SendRing, PostSend_KeyThatDoesNotFit_LeavesTheCheckToTheDaemon) {
  RingMemory memory;
  const Buffer buffer(memory);
  memory.keys().Insert(0x77, {buffer.address(), 64, buffer.address(), RingMemory::kPd + 1, 0});
  const ibv_sge wrong[] = {
      {buffer.address(), 8, 0x99},                                  // unknown key
      {buffer.address(), 8, 0x77},                                  // other protection domain
      {buffer.address() - 1, 8, buffer.key},                        // begins too early
      {buffer.address() + buffer.bytes.size() - 7, 8, buffer.key},  // ends too late
      {~uint64_t{0} - 3, 8, buffer.key},                            // wraps around
  };
  for (size_t i = 0; i < std::size(wrong); ++i) {
    ibv_sge sge = wrong[i];
    ibv_send_wr wr = Request(IBV_WR_SEND, &sge, 1);
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad)) << i;
    EXPECT_EQ(0, memory.SendSlot(static_cast<uint32_t>(i)).flags) << i;
  }
}

TEST(SendRing, PostSend_KeyWithOtherIova_IsTranslated) {
  RingMemory memory;
  std::string text = "the quick brown fox";
  memory.keys().Insert(
      0x55, {0x100000, text.size(), reinterpret_cast<uint64_t>(text.data()), RingMemory::kPd, 0});
  ibv_sge sge = {0x100004, 5, 0x55};
  ibv_send_wr wr = Request(IBV_WR_RDMA_WRITE, &sge, 1);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(0, memcmp(memory.SendPayload(0), "quick", 5));
}

TEST(SendRing, PostSend_Inline_NeedsNoKeyAndSaysOnlyTheLength) {
  RingMemory memory;
  char first[] = "hello ";
  char second[] = "world";
  ibv_sge sges[2] = {{reinterpret_cast<uint64_t>(first), 6, 0},
                     {reinterpret_cast<uint64_t>(second), 5, 0}};
  ibv_send_wr wr = Request(IBV_WR_SEND, sges, 2, IBV_SEND_INLINE | IBV_SEND_SOLICITED);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(ROCEGW_WQE_INLINE | ROCEGW_WQE_SOLICITED, memory.SendSlot(0).flags);
  EXPECT_EQ(1, memory.SendSlot(0).num_sge);
  EXPECT_EQ(11u, memory.SendSges(0)[0].length);
  EXPECT_EQ(0, memcmp(memory.SendPayload(0), "hello world", 11));
}

TEST(SendRing, PostSend_Atomics_CarryTheirOperands) {
  RingMemory memory;
  const Buffer buffer(memory);
  ibv_sge sge = buffer.Sge(8, 8);
  ibv_send_wr wr = Request(IBV_WR_ATOMIC_CMP_AND_SWP, &sge, 1);
  wr.wr.atomic.remote_addr = 0x9000;
  wr.wr.atomic.compare_add = 11;
  wr.wr.atomic.swap = 22;
  wr.wr.atomic.rkey = 33;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(0, memory.SendSlot(0).flags) << "the result comes from afar, nothing is to be copied";
  EXPECT_EQ(0x9000u, memory.SendSlot(0).u.rdma.remote_address);
  EXPECT_EQ(11u, memory.SendSlot(0).u.rdma.compare_add);
  EXPECT_EQ(22u, memory.SendSlot(0).u.rdma.swap);
  EXPECT_EQ(33u, memory.SendSlot(0).u.rdma.rkey);
}

TEST(SendRing, PostSend_Datagram_CarriesItsAddressAndAQkey) {
  RingMemory::Shape shape;
  shape.qp_type = ROCEGW_QPT_UD;
  RingMemory memory(shape);
  memory.qp().send.qkey = 0x1234;
  AddressHandle ah{};
  ah.vector.dgid[15] = 9;
  ah.vector.sgid_index = 4;
  ah.vector.hop_limit = 64;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  wr.wr.ud.ah = &ah.ibv;
  wr.wr.ud.remote_qpn = 0x55;
  wr.wr.ud.remote_qkey = 0x777;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  wr.wr.ud.remote_qkey = 0x80000000u;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(9, memory.SendSlot(0).u.ud.av.dgid[15]);
  EXPECT_EQ(4, memory.SendSlot(0).u.ud.av.sgid_index);
  EXPECT_EQ(0x55u, memory.SendSlot(0).u.ud.remote_qpn);
  EXPECT_EQ(0x777u, memory.SendSlot(0).u.ud.remote_qkey);
  EXPECT_EQ(0x1234u, memory.SendSlot(1).u.ud.remote_qkey) << "a privileged key means the QP's own";
  wr.wr.ud.ah = nullptr;
  EXPECT_EQ(EINVAL, PostSend(memory.qp().send, &wr, &bad));
}

TEST(SendRing, PostSend_SignalAll_SignalsEverything) {
  RingMemory::Shape shape;
  shape.signal_all = true;
  RingMemory memory(shape);
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(ROCEGW_WQE_SIGNALED, memory.SendSlot(0).flags);
}

TEST(SendRing, PostSend_List_StopsAtTheFirstBadRequest) {
  RingMemory memory;
  const Buffer buffer(memory);
  ibv_sge sge = buffer.Sge(0, 8);
  ibv_send_wr wrs[3] = {Request(IBV_WR_SEND, &sge, 1), Request(IBV_WR_TSO, &sge, 1),
                        Request(IBV_WR_SEND, &sge, 1)};
  wrs[0].next = &wrs[1];
  wrs[1].next = &wrs[2];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, PostSend(memory.qp().send, wrs, &bad));
  EXPECT_EQ(&wrs[1], bad);
  EXPECT_EQ(1u, memory.control().sq_producer);
  EXPECT_TRUE(memory.TakeDoorbell()) << "what came before the bad one is on its way";
}

TEST(SendRing, PostSend_BadRequests_AreRefusedAndRingNothing) {
  RingMemory memory;
  const Buffer buffer(memory);
  ibv_sge sges[4] = {buffer.Sge(0, 8), buffer.Sge(0, 8), buffer.Sge(0, 8), buffer.Sge(0, 8)};
  ibv_sge huge = {0, 0xffffffff, 1};
  ibv_sge seven = buffer.Sge(0, 7);
  ibv_sge beyond_inline = buffer.Sge(0, 65);
  ibv_send_wr wrs[] = {
      Request(IBV_WR_SEND, sges, 4),  // more SGEs than the queue has
      Request(IBV_WR_SEND, sges, -1),
      Request(IBV_WR_SEND, &huge, 1),                   // longer than any message
      Request(IBV_WR_ATOMIC_FETCH_AND_ADD, &seven, 1),  // atomics are 8 bytes
      Request(IBV_WR_SEND, &beyond_inline, 1, IBV_SEND_INLINE),
      Request(IBV_WR_RDMA_READ, sges, 1, IBV_SEND_INLINE),  // nothing to inline
      Request(IBV_WR_SEND, sges, 1, IBV_SEND_IP_CSUM),
      Request(IBV_WR_TSO, sges, 1),
      Request(static_cast<ibv_wr_opcode>(200), sges, 1),
  };
  for (size_t i = 0; i < std::size(wrs); ++i) {
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(EINVAL, PostSend(memory.qp().send, &wrs[i], &bad)) << i;
    EXPECT_EQ(&wrs[i], bad) << i;
  }
  EXPECT_EQ(0u, memory.control().sq_producer);
  EXPECT_FALSE(memory.TakeDoorbell());
}

TEST(SendRing, PostSend_OpcodesOfOtherTransports_AreRefused) {
  RingMemory::Shape shape;
  shape.qp_type = ROCEGW_QPT_UC;
  RingMemory memory(shape);
  ibv_send_wr wr = Request(IBV_WR_RDMA_READ, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, PostSend(memory.qp().send, &wr, &bad));
  wr.opcode = IBV_WR_RDMA_WRITE;
  EXPECT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
}

TEST(SendRing, PostSend_BeforeReadyToSend_IsRefused) {
  RingMemory memory;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  for (const uint32_t state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    memory.qp().send.state = state;
    EXPECT_EQ(EINVAL, PostSend(memory.qp().send, &wr, &bad)) << state;
  }
  memory.qp().send.state = IBV_QPS_ERR;
  EXPECT_EQ(0, PostSend(memory.qp().send, &wr, &bad)) << "it will be flushed";
}

TEST(SendRing, PostSend_FullQueue_IsRefusedUntilTheDaemonReleases) {
  RingMemory memory;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < 8; ++i) ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(ENOMEM, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(&wr, bad);
  memory.status().sq_released = 1;
  EXPECT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(ENOMEM, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(9u, memory.control().sq_producer);
}

TEST(SendRing, PostSend_IndexWrapsAround_GoesOn) {
  RingMemory memory;
  constexpr uint32_t kBeforeWrap = 0xfffffffcu;
  memory.qp().send.producer = memory.qp().send.released_seen = kBeforeWrap;
  memory.status().sq_released = kBeforeWrap;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  for (uint32_t i = 0; i < 100; ++i) {
    wr.wr_id = i;
    ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad)) << i;
    ASSERT_EQ(i, memory.SendSlot(kBeforeWrap + i).wr_id);
    memory.status().sq_released = kBeforeWrap + i + 1;
  }
  EXPECT_EQ(kBeforeWrap + 100, memory.control().sq_producer);
}

TEST(SendRing, PostSend_SleepingWorker_IsWoken) {
  RingMemory memory;
  const int fd = eventfd(0, EFD_NONBLOCK);
  ASSERT_EQ(0, MarkWake(fd));
  memory.qp().send.bell.wake_fd = fd;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  uint64_t count = 0;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(-1, read(fd, &count, sizeof count)) << "it is awake";
  memory.line().need_wakeup = 1;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  EXPECT_EQ(static_cast<ssize_t>(sizeof count), read(fd, &count, sizeof count));
  close(fd);
}

TEST(SendRing, PostSend_TheNumberIsAnotherFilesNow_NothingIsWrittenThere) {
  RingMemory memory;
  const int fd = eventfd(0, EFD_NONBLOCK);
  uint32_t lost = 0;
  memory.qp().send.bell.wake_fd = fd;
  memory.qp().send.bell.lost = &lost;
  memory.line().need_wakeup = 1;
  ibv_send_wr wr = Request(IBV_WR_SEND, nullptr, 0);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, PostSend(memory.qp().send, &wr, &bad));
  uint64_t count = 0;
  EXPECT_EQ(-1, read(fd, &count, sizeof count));
  EXPECT_EQ(1u, lost);
  close(fd);
}

// Posters on several threads against a worker that drains: every request arrives once, complete,
// and each thread's in order.
TEST(SendRing, PostSend_ManyThreads_LoseAndMixNothing) {
  RingMemory::Shape shape;
  shape.sq_entries = 32;
  RingMemory memory(shape);
  constexpr uint64_t kPerThread = 4000;
  constexpr uint64_t kThreads = 4;
  std::vector<std::thread> posters;
  for (uint64_t t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t] {
      uint64_t content = 0;
      ibv_sge sge = {reinterpret_cast<uint64_t>(&content), sizeof content, 0};
      for (uint64_t i = 0; i < kPerThread;) {
        content = t << 32 | i;
        ibv_send_wr wr = Request(IBV_WR_SEND, &sge, 1, IBV_SEND_INLINE);
        wr.wr_id = content;
        ibv_send_wr* bad = nullptr;
        const int error = PostSend(memory.qp().send, &wr, &bad);
        if (error == 0) {
          ++i;
        } else {
          ASSERT_EQ(ENOMEM, error);
          std::this_thread::yield();
        }
      }
    });
  }
  uint64_t next[kThreads] = {};
  uint32_t taken = 0;
  bool rang = false;
  while (taken < kThreads * kPerThread) {
    rang = memory.TakeDoorbell() || rang;
    const uint32_t producer = __atomic_load_n(&memory.control().sq_producer, __ATOMIC_ACQUIRE);
    if (producer == taken) std::this_thread::yield();
    for (; taken != producer; ++taken) {
      const uint64_t id = memory.SendSlot(taken).wr_id;
      uint64_t content = 0;
      memcpy(&content, memory.SendPayload(taken), sizeof content);
      EXPECT_EQ(id, content);
      EXPECT_EQ(next[id >> 32]++, id & 0xffffffff);
    }
    __atomic_store_n(&memory.status().sq_released, taken, __ATOMIC_RELEASE);
  }
  for (std::thread& poster : posters) poster.join();
  EXPECT_TRUE(rang || memory.TakeDoorbell());
}

TEST(MapRings, MapQpRings_ImplausibleReplies_AreRefused) {
  const auto refused = [](void (*spoil)(rocegw_qp_reply&)) {
    RingMemory memory;
    spoil(memory.reply());
    QpRings rings;
    return MapQpRings(memory.reply(), memory.resolver(), memory.mapping(), &rings) == EPROTO;
  };
  EXPECT_FALSE(refused([](rocegw_qp_reply&) {}));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.sq_entries = 7; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.sq_entries = 0; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.rq_entries = 6; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.sq_entries *= 2; }))
      << "ring is too small for that";
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.rq_entries *= 2; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.doorbell_bit = ROCEGW_DOORBELL_BITS; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.max_inline = 129; }))
      << "payload slots are smaller";
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.status.length = 32; }));
  EXPECT_TRUE(refused([](rocegw_qp_reply& r) { r.rq_payload.length -= 1; }));
}

}  // namespace
}  // namespace rocegw::client
