// SPDX-License-Identifier: Apache-2.0
// FLUSH and ATOMIC WRITE as programs request them, including programs with later headers than ours:
// with and without support of the device.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

// Layout in <infiniband/verbs.h> of rdma-core 46 and later, written independently.
struct QpExOfLaterHeaders {
  uint8_t up_to_atomic_write[offsetof(ibv_qp_ex, wr_atomic_write)];
  void (*wr_atomic_write)(ibv_qp_ex*, uint32_t, uint64_t, const void*);
  void (*wr_flush)(ibv_qp_ex*, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
};
constexpr uint64_t kWithFlush = 1 << 11;
constexpr uint64_t kWithAtomicWrite = 1 << 12;
constexpr int kFlushGlobal = 1 << 8;
constexpr int kFlushPersistent = 1 << 9;
constexpr uint64_t kDeviceFlushGlobal = uint64_t{1} << 38;
constexpr uint64_t kDeviceFlushPersistent = uint64_t{1} << 39;
constexpr uint64_t kDeviceAtomicWrite = uint64_t{1} << 40;

class Placement : public AttachedTest, public ::testing::WithParamInterface<bool> {
 protected:
  Placement() : AttachedTest({.placement = GetParam()}) {}
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    AttachedTest::TearDown();
  }
  ibv_qp* Make(uint64_t ops, ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr_ex init{};
    init.send_cq = init.recv_cq = cq_;
    init.qp_type = type;
    init.cap = {4, 1, 1, 1, 8};
    init.pd = pd_;
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    init.send_ops_flags = ops;
    ibv_qp* const qp = ibv_create_qp_ex(context_, &init);
    if (qp == nullptr) return nullptr;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    EXPECT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE));
    return qp;
  }
  int Post(ibv_qp* qp, unsigned opcode, uint32_t length = 8) {
    uint64_t word = 0x55;
    ibv_sge sge{reinterpret_cast<uint64_t>(&word), length, 5};
    ibv_send_wr wr{};
    wr.opcode = static_cast<ibv_wr_opcode>(opcode);
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = 0x2000;
    wr.wr.rdma.rkey = 7;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp, &wr, &bad);
  }
  ibv_cq* cq_ = nullptr;
};

TEST_P(Placement, Device_SaysWhetherItHasThem) {
  ibv_device_attr_ex attr{};
  ASSERT_EQ(0, ibv_query_device_ex(context_, nullptr, &attr));
  const uint64_t has = GetParam() ? kDeviceFlushGlobal | kDeviceAtomicWrite : 0;
  EXPECT_EQ(has, attr.device_cap_flags_ex &
                     (kDeviceFlushGlobal | kDeviceFlushPersistent | kDeviceAtomicWrite));
}

TEST_P(Placement, QueuePairs_HaveTheCallsWhereTheDeviceHas) {
  for (const uint64_t op : {kWithFlush, kWithAtomicWrite}) {
    errno = 0;
    EXPECT_EQ(nullptr, Make(op, IBV_QPT_UC)) << "reliable ones only";
    EXPECT_EQ(EOPNOTSUPP, errno);
    errno = 0;
    ibv_qp* const qp = Make(op | IBV_QP_EX_WITH_SEND);
    EXPECT_EQ(GetParam(), qp != nullptr);
    EXPECT_EQ(GetParam() ? 0 : EOPNOTSUPP, errno);
    if (qp == nullptr) continue;
    EXPECT_EQ(0, ibv_destroy_qp(qp));
  }
}

TEST_P(Placement, Regions_MayBeFlushedWhereTheDeviceHas_ButNeverToWhatPersists) {
  alignas(4096) static uint8_t memory[4096];
  const auto works = [&](int access) {
    errno = 0;
    ibv_mr* const mr = ibv_reg_mr(pd_, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | access);
    return mr != nullptr && ibv_dereg_mr(mr) == 0;
  };
  EXPECT_EQ(GetParam(), works(kFlushGlobal));
  EXPECT_EQ(GetParam() ? 0 : EOPNOTSUPP, errno);
  EXPECT_FALSE(works(kFlushPersistent));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_P(Placement, PostSend_TakesAtomicWriteOfEightBytes_AndCannotDescribeAFlush) {
  ibv_qp* const qp = Make(IBV_QP_EX_WITH_SEND);
  ASSERT_NE(nullptr, qp);
  EXPECT_EQ(EINVAL, Post(qp, 14));
  EXPECT_EQ(EINVAL, Post(qp, 15, 4));
  EXPECT_EQ(GetParam() ? 0 : EINVAL, Post(qp, 15));
  if (GetParam()) {
    const rocegw_send_wqe* const wqe = daemon_.Qp(qp->qp_num).SendSlot(0);
    EXPECT_EQ(ROCEGW_WR_ATOMIC_WRITE, wqe->opcode);
    EXPECT_EQ(1, wqe->num_sge);
    EXPECT_EQ(0x2000u, wqe->u.rdma.remote_address);
    EXPECT_EQ(7u, wqe->u.rdma.rkey);
  }
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

INSTANTIATE_TEST_SUITE_P(Device, Placement, ::testing::Bool(), [](const auto& parameter) {
  return parameter.param ? "WithThem" : "WithoutThem";
});

class PlacementCalls : public Placement {};
INSTANTIATE_TEST_SUITE_P(Device, PlacementCalls, ::testing::Values(true));

TEST_P(PlacementCalls, AtomicWrite_TakesItsBytesAlong) {
  ibv_qp* const qp = Make(kWithAtomicWrite);
  ASSERT_NE(nullptr, qp);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(qp);
  uint64_t value = 0x1122334455667788;
  ibv_wr_start(ex);
  ex->wr_id = 3;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_write(ex, 7, 0x2000, &value);
  value = 0;
  EXPECT_EQ(0, ibv_wr_complete(ex));
  const FakeQp fake = daemon_.Qp(qp->qp_num);
  const rocegw_send_wqe* const wqe = fake.SendSlot(0);
  EXPECT_EQ(ROCEGW_WR_ATOMIC_WRITE, wqe->opcode);
  EXPECT_EQ(ROCEGW_WQE_SIGNALED | ROCEGW_WQE_INLINE, wqe->flags);
  EXPECT_EQ(3u, wqe->wr_id);
  EXPECT_EQ(0x2000u, wqe->u.rdma.remote_address);
  EXPECT_EQ(7u, wqe->u.rdma.rkey);
  EXPECT_EQ(8u, fake.SendSges(0)->length);
  uint64_t taken;
  std::memcpy(&taken, fake.SendPayload(0), sizeof taken);
  EXPECT_EQ(0x1122334455667788u, taken);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_P(PlacementCalls, Flush_CalledWhereLaterHeadersHaveIt) {
  ibv_qp* const qp = Make(kWithFlush | kWithAtomicWrite);
  ASSERT_NE(nullptr, qp);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(qp);
  const auto* const later = reinterpret_cast<const QpExOfLaterHeaders*>(ex);
  EXPECT_EQ(ex->wr_atomic_write, later->wr_atomic_write);
  ibv_wr_start(ex);
  ex->wr_id = 4;
  ex->wr_flags = IBV_SEND_FENCE;
  later->wr_flush(ex, 7, 0x3000, 4096, 1, 1);
  ex->wr_id = 5;
  ibv_wr_atomic_write(ex, 7, 0x2000, &ex->wr_id);
  EXPECT_EQ(0, ibv_wr_complete(ex));
  const FakeQp fake = daemon_.Qp(qp->qp_num);
  const rocegw_send_wqe* const wqe = fake.SendSlot(0);
  EXPECT_EQ(ROCEGW_WR_FLUSH, wqe->opcode);
  EXPECT_EQ(ROCEGW_WQE_FENCE, wqe->flags);
  EXPECT_EQ(0, wqe->num_sge);
  EXPECT_EQ(4u, wqe->wr_id);
  EXPECT_EQ(0x3000u, wqe->u.rdma.remote_address);
  EXPECT_EQ(7u, wqe->u.rdma.rkey);
  EXPECT_EQ(4096u, wqe->u.rdma.compare_add);
  EXPECT_EQ(0x11u, wqe->u.rdma.swap);
  EXPECT_EQ(ROCEGW_WR_ATOMIC_WRITE, fake.SendSlot(1)->opcode);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_P(PlacementCalls, FlushThatMeansNothing_NoneIsPosted) {
  ibv_qp* const qp = Make(kWithFlush);
  ASSERT_NE(nullptr, qp);
  ibv_qp_ex* const ex = ibv_qp_to_qp_ex(qp);
  const auto* const later = reinterpret_cast<const QpExOfLaterHeaders*>(ex);
  const struct {
    size_t length;
    uint8_t type;
    uint8_t level;
  } wrong[] = {{8, 0, 0}, {8, 4, 0}, {8, 1, 2}, {size_t{1} << 32, 1, 0}};
  for (const auto& [length, type, level] : wrong) {
    ibv_wr_start(ex);
    later->wr_flush(ex, 7, 0x3000, length, type, level);
    EXPECT_EQ(EINVAL, ibv_wr_complete(ex));
  }
  EXPECT_EQ(0u, daemon_.Qp(qp->qp_num).control->sq_producer);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

// A libibverbs without FLUSH looks for its mark there.
TEST_P(PlacementCalls, QueuePairWithoutFlush_IsExtendedForOlderLibrariesToo) {
  ibv_qp* const qp = Make(kWithAtomicWrite);
  ASSERT_NE(nullptr, qp);
  const auto* const later = reinterpret_cast<const QpExOfLaterHeaders*>(ibv_qp_to_qp_ex(qp));
  uint32_t mark;
  std::memcpy(&mark, &later->wr_flush, sizeof mark);
  EXPECT_EQ(1u, mark);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
}

}  // namespace
}  // namespace rocegw::testing
