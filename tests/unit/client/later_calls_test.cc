// SPDX-License-Identifier: Apache-2.0
// Functions of later libibverbs and librdmacm, called like programs linked with them, where the
// installed ones lack them.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {

// Layout in <infiniband/verbs.h> of rdma-core 65, written independently.
struct MrInitAttrOfLaterHeaders {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  void* buf;
};

extern "C" {
int LaterQueryPortSpeed(ibv_context*, uint32_t, uint64_t*) __asm__("ibv_query_port_speed");
ibv_mr* LaterRegMrEx(ibv_pd*, MrInitAttrOfLaterHeaders*) __asm__("ibv_reg_mr_ex");
void* LaterAllocBuf(ibv_pd*, size_t, void**) __asm__("ibv_alloc_buf");
void LaterFreeBuf(void*) __asm__("ibv_free_buf");
ibv_mr* LaterRegBufMr(ibv_pd*, void*, void*, size_t, int) __asm__("ibv_reg_buf_mr");
int LaterExportBuf(void*) __asm__("ibv_export_buf_dmabuf_fd");
void* LaterAllocDmah(ibv_context*, void*) __asm__("ibv_alloc_dmah");
int LaterQueryCounters(ibv_context*, void*, size_t) __asm__("_ibv_query_comp_cntr_caps");
void* LaterCreateCounter(ibv_context*, void*) __asm__("ibv_create_comp_cntr");
int LaterResolveAddrinfo(rdma_cm_id*, const char*, const char*,
                         const rdma_addrinfo*) __asm__("rdma_resolve_addrinfo");
int LaterQueryAddrinfo(rdma_cm_id*, rdma_addrinfo**) __asm__("rdma_query_addrinfo");
int LaterWriteCmEvent(rdma_cm_id*, rdma_cm_event_type, int,
                      uint64_t) __asm__("rdma_write_cm_event");
}

namespace {

constexpr uint64_t kHasIova = 1 << 0;
constexpr uint64_t kHasAddress = 1 << 1;
constexpr uint64_t kHasFd = 1 << 2;
constexpr uint64_t kHasDmah = 1 << 4;
constexpr uint64_t kHasBuffer = 1 << 5;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;

class LaterCalls : public AttachedTest {
 protected:
  rocegw_reg_mr Asked() { return daemon_.Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>(); }
  char memory_[4096] = {};
};

TEST_F(LaterCalls, PortSpeed_CountsHundredsOfMegabits) {
  uint64_t speed = 0;
  ASSERT_EQ(0, LaterQueryPortSpeed(context_, 1, &speed));
  EXPECT_EQ(1000u, speed) << "the daemon says four lanes of 25 Gbit/s";
  EXPECT_EQ(EINVAL, LaterQueryPortSpeed(context_, 2, &speed));
  EXPECT_EQ(EINVAL, LaterQueryPortSpeed(context_, 257, &speed)) << "whose low byte is a port";
}

TEST_F(LaterCalls, RegMrEx_TakesTheMembersThatTheMaskNames) {
  MrInitAttrOfLaterHeaders attr{};
  attr.length = sizeof memory_;
  attr.access = kAccess;
  attr.addr = memory_;
  attr.iova = 0xabc000;
  attr.comp_mask = kHasAddress;
  ibv_mr* const plain = LaterRegMrEx(pd_, &attr);
  ASSERT_NE(nullptr, plain);
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory_), Asked().iova);
  attr.comp_mask |= kHasIova;
  ibv_mr* const moved = LaterRegMrEx(pd_, &attr);
  ASSERT_NE(nullptr, moved);
  EXPECT_EQ(0xabc000u, Asked().iova);
  EXPECT_EQ(sizeof memory_, Asked().length);
  EXPECT_EQ(0, ibv_dereg_mr(plain));
  EXPECT_EQ(0, ibv_dereg_mr(moved));
}

TEST_F(LaterCalls, RegMrEx_WhatIsNotMemoryOfTheProgram_IsRefused) {
  MrInitAttrOfLaterHeaders attr{};
  attr.length = sizeof memory_;
  attr.addr = memory_;
  attr.comp_mask = kHasAddress | kHasDmah;
  errno = 0;
  EXPECT_EQ(nullptr, LaterRegMrEx(pd_, &attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  for (const uint64_t mask : {kHasAddress | kHasFd, kHasFd, kHasFd | kHasIova}) {
    attr.comp_mask = mask;
    errno = 0;
    EXPECT_EQ(nullptr, LaterRegMrEx(pd_, &attr));
    EXPECT_EQ(EINVAL, errno) << mask;
  }
  constexpr uint64_t kHasFdOffset = 1 << 3;
  attr.comp_mask = kHasFd | kHasFdOffset | kHasIova;
  attr.iova = attr.fd_offset = 0;
  attr.fd = -1;
  errno = 0;
  EXPECT_EQ(nullptr, LaterRegMrEx(pd_, &attr));
  EXPECT_EQ(EBADF, errno) << "a dma-buf, but for its descriptor";
  attr.comp_mask = kHasIova;
  errno = 0;
  EXPECT_EQ(nullptr, LaterRegMrEx(pd_, &attr));
  EXPECT_EQ(EINVAL, errno) << "no address";
}

TEST_F(LaterCalls, Buffers_AreMemoryOfTheirDomain) {
  void* buffer = nullptr;
  auto* const memory = static_cast<char*>(LaterAllocBuf(pd_, 8192, &buffer));
  ASSERT_NE(nullptr, memory);
  memset(memory, 0x5a, 8192);
  ibv_mr* const mr = LaterRegBufMr(pd_, buffer, memory + 4096, 4096, kAccess);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory) + 4096, Asked().address);
  EXPECT_EQ(0, ibv_dereg_mr(mr));

  errno = 0;
  EXPECT_EQ(nullptr, LaterRegBufMr(pd_, buffer, memory + 4096, 4097, kAccess));
  EXPECT_EQ(EINVAL, errno) << "beyond its end";
  EXPECT_EQ(nullptr, LaterRegBufMr(pd_, buffer, memory - 1, 16, kAccess));
  EXPECT_EQ(EINVAL, errno);
  ibv_pd* const other = ibv_alloc_pd(context_);
  EXPECT_EQ(nullptr, LaterRegBufMr(other, buffer, memory, 16, kAccess));
  EXPECT_EQ(EINVAL, errno) << "of another domain";
  EXPECT_EQ(0, ibv_dealloc_pd(other));

  MrInitAttrOfLaterHeaders attr{};
  attr.length = 8192;
  attr.access = kAccess;
  attr.addr = memory;
  attr.buf = buffer;
  attr.comp_mask = kHasAddress | kHasBuffer;
  ibv_mr* const whole = LaterRegMrEx(pd_, &attr);
  ASSERT_NE(nullptr, whole);
  EXPECT_EQ(0, ibv_dereg_mr(whole));
  attr.length = 8193;
  EXPECT_EQ(nullptr, LaterRegMrEx(pd_, &attr));
  EXPECT_EQ(-1, LaterExportBuf(buffer));
  EXPECT_EQ(EOPNOTSUPP, errno);
  LaterFreeBuf(buffer);
}

TEST_F(LaterCalls, WhatNoDeviceOfOursHas_IsRefused) {
  errno = 0;
  EXPECT_EQ(nullptr, LaterAllocDmah(context_, nullptr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  errno = 0;
  EXPECT_EQ(nullptr, LaterCreateCounter(context_, nullptr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(EOPNOTSUPP, LaterQueryCounters(context_, nullptr, 0));
}

TEST_F(LaterCalls, OfConnectionManagerIds_AreRefused) {
  rdma_event_channel* const channel = rdma_create_event_channel();
  ASSERT_NE(nullptr, channel);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(0, rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP));
  rdma_addrinfo* info = nullptr;
  for (const auto& call :
       {+[](rdma_cm_id*of, rdma_addrinfo**) {
          return LaterResolveAddrinfo(of, "localhost", nullptr, nullptr);
        },
        +[](rdma_cm_id*of, rdma_addrinfo**to) { return LaterQueryAddrinfo(of, to); },
        +[](rdma_cm_id*of, rdma_addrinfo**) {
          return LaterWriteCmEvent(of, RDMA_CM_EVENT_ADDR_CHANGE, 0, 0);
        }}) {
    errno = 0;
    EXPECT_EQ(-1, call(id, &info));
    EXPECT_EQ(EOPNOTSUPP, errno);
  }
  EXPECT_EQ(0, rdma_destroy_id(id));
  rdma_destroy_event_channel(channel);
}

TEST_F(LaterCalls, ZeroBasedRegions_BeginAtZero) {
  ibv_mr* const mr = ibv_reg_mr(pd_, memory_, sizeof memory_, kAccess | IBV_ACCESS_ZERO_BASED);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(0u, Asked().iova);
  EXPECT_EQ(reinterpret_cast<uint64_t>(memory_), Asked().address);
  EXPECT_EQ(memory_, mr->addr);
  EXPECT_EQ(static_cast<uint32_t>(kAccess), Asked().access) << "the gateway needs not know";
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

}  // namespace
}  // namespace rocegw::testing
