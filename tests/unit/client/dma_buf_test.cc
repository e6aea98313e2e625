// SPDX-License-Identifier: Apache-2.0
// ibv_reg_dmabuf_mr against a scripted daemon, with a memfd in the place of the buffer: the library
// only maps it.
#include <sys/mman.h>

#include <cstring>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kOffset = kPage + 64;
constexpr uint64_t kIova = 0xabc000 + 64;  // at the same place of a page
constexpr size_t kLength = 2 * kPage;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

class DmaBufTest : public QpTest {
 protected:
  void SetUp() override {
    QpTest::SetUp();
    buffer_ = memfd_create("buffer", MFD_CLOEXEC);
    ASSERT_EQ(0, ftruncate(buffer_, 4 * kPage));
  }
  void TearDown() override {
    close(buffer_);
    QpTest::TearDown();
  }
  ibv_mr* Register(uint64_t iova = kIova, int access = kAccess) {
    errno = 0;
    return ibv_reg_dmabuf_mr(pd_, kOffset, kLength, iova, buffer_, access);
  }
  size_t Requests(uint32_t type) { return daemon_->Requests(type).size(); }

  int buffer_ = -1;
};

TEST_F(DmaBufTest, DaemonGetsTheBuffer_AndALocationInIt) {
  ibv_mr* const mr = Register();
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(reinterpret_cast<void*>(kOffset), mr->addr) << "as libibverbs sets it";
  EXPECT_EQ(kLength, mr->length);
  const auto imported = daemon_->Last(ROCEGW_MSG_IMPORT_REGION);
  EXPECT_TRUE(imported.had_descriptor);
  const auto region = imported.As<rocegw_import_region>();
  EXPECT_EQ(4 * kPage, region.length) << "whole pages up to the registration's end";
  EXPECT_EQ(0u, region.address % kPage);
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_NE(0u, asked.region);
  EXPECT_EQ(kOffset, asked.region_offset);
  EXPECT_EQ(region.address + kOffset, asked.address);
  EXPECT_EQ(kIova, asked.iova);
  EXPECT_EQ(kLength, asked.length);
  EXPECT_EQ(static_cast<uint32_t>(kAccess), asked.access);

  // The library's mapping is the buffer.
  ASSERT_EQ(5, pwrite(buffer_, "hello", 5, kOffset));
  EXPECT_EQ(0, memcmp(reinterpret_cast<const void*>(asked.address), "hello", 5));

  EXPECT_EQ(0, ibv_dereg_mr(mr));
  EXPECT_EQ(asked.region,
            daemon_->Last(ROCEGW_MSG_DESTROY_REGION).As<rocegw_object_request>().handle);
  unsigned char present[4];
  EXPECT_EQ(-1, mincore(reinterpret_cast<void*>(region.address), 4 * kPage, present)) << "unmapped";
  EXPECT_EQ(ENOMEM, errno);
}

TEST_F(DmaBufTest, SmallPayloads_AreTakenFromTheBuffer) {
  ibv_mr* const mr = Register();
  ASSERT_NE(nullptr, mr);
  ASSERT_EQ(5, pwrite(buffer_, "hello", 5, kOffset + 10));
  ToState(IBV_QPS_INIT);
  ToState(IBV_QPS_RTR);
  ToState(IBV_QPS_RTS);
  ibv_sge sge = {kIova + 10, 5, mr->lkey};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(0, memcmp(Fake().SendPayload(0), "hello", 5));
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(DmaBufTest, ImpossibleRequests_AreRefused_WithoutAskingTheDaemon) {
  EXPECT_EQ(nullptr, Register(kIova + 1));
  EXPECT_EQ(EINVAL, errno) << "another place of a page";
  for (const int access :
       {int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_ON_DEMAND}, int{IBV_ACCESS_MW_BIND}}) {
    EXPECT_EQ(nullptr, Register(kIova, access));
    EXPECT_EQ(EINVAL, errno) << access;
  }
  EXPECT_EQ(nullptr, ibv_reg_dmabuf_mr(pd_, 0, 0, 0, buffer_, kAccess));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, ibv_reg_dmabuf_mr(pd_, ~uint64_t{4095}, 8192, 0, buffer_, kAccess));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, ibv_reg_dmabuf_mr(pd_, 0, 4096, 0, -1, kAccess));
  EXPECT_EQ(EBADF, errno);
  int ends[2];
  ASSERT_EQ(0, pipe2(ends, O_CLOEXEC));
  EXPECT_EQ(nullptr, ibv_reg_dmabuf_mr(pd_, 0, 4096, 0, ends[1], kAccess));
  EXPECT_NE(0, errno) << "a file that cannot be mapped";
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(0u, Requests(ROCEGW_MSG_IMPORT_REGION));
}

TEST_F(DmaBufTest, DaemonRefuses_NothingStays) {
  daemon_->Fail(ROCEGW_MSG_IMPORT_REGION, ENOSYS);
  EXPECT_EQ(nullptr, Register());
  EXPECT_EQ(EOPNOTSUPP, errno) << "an older daemon";
  daemon_->Fail(ROCEGW_MSG_IMPORT_REGION, 0);
  daemon_->Fail(ROCEGW_MSG_REG_MR, ENOMEM);
  EXPECT_EQ(nullptr, Register());
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_EQ(1u, Requests(ROCEGW_MSG_DESTROY_REGION));
}

TEST_F(DmaBufTest, Rereg_IsRefused_AsByLibibverbs) {
  ibv_mr* const mr = Register();
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
            ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0));
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

}  // namespace
}  // namespace rocegw::testing
