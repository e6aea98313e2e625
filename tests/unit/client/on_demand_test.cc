// SPDX-License-Identifier: Apache-2.0
// On-demand regions: registration without a check of the mapping, and advice.
#include <set>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

constexpr size_t kPage = 4096;

class OnDemandTest : public QpTest {
 protected:
  void SetUp() override {
    QpTest::SetUp();
    memory_ = static_cast<uint8_t*>(
        mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(MAP_FAILED, memory_);
    region_ = ibv_reg_mr(pd_, memory_, 4 * kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    ASSERT_NE(nullptr, region_);
  }
  void TearDown() override {
    if (region_ != nullptr) {
      EXPECT_EQ(0, ibv_dereg_mr(region_));
    }
    munmap(memory_, 4 * kPage);
    QpTest::TearDown();
  }
  int Advise(ibv_advise_mr_advice advice, uint32_t flags, size_t offset, uint32_t length,
             uint32_t lkey, ibv_pd* pd = nullptr) {
    ibv_sge sge = {reinterpret_cast<uint64_t>(memory_) + offset, length, lkey};
    return ibv_advise_mr(pd != nullptr ? pd : pd_, advice, flags, &sge, 1);
  }
  std::set<size_t> Present() {
    unsigned char pages[4] = {};
    EXPECT_EQ(0, mincore(memory_, sizeof pages * kPage, pages));
    std::set<size_t> present;
    for (size_t i = 0; i < sizeof pages; ++i) {
      if ((pages[i] & 1) != 0) present.insert(i);
    }
    return present;
  }

  uint8_t* memory_ = nullptr;
  ibv_mr* region_ = nullptr;
};

constexpr auto kRead = IBV_ADVISE_MR_ADVICE_PREFETCH;
constexpr auto kWrite = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
constexpr auto kNoFault = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
constexpr uint32_t kFlush = IBV_ADVISE_MR_FLAG_FLUSH;

TEST_F(OnDemandTest, Device_SaysSo) {
  ibv_device_attr_ex attr;
  ASSERT_EQ(0, ibv_query_device_ex(context_, nullptr, &attr));
  EXPECT_EQ(uint64_t{IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT}, attr.odp_caps.general_caps);
  EXPECT_NE(0u, attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC);
  EXPECT_EQ(0u, attr.odp_caps.per_transport_caps.uc_odp_caps & IBV_ODP_SUPPORT_READ);
  EXPECT_EQ(0u, attr.odp_caps.per_transport_caps.ud_odp_caps & IBV_ODP_SUPPORT_WRITE);
  EXPECT_NE(0u, attr.xrc_odp_caps & IBV_ODP_SUPPORT_SRQ_RECV);
}

TEST_F(OnDemandTest, RegMr_AsksNotWhatIsMapped_AndTellsTheDaemon) {
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND}, asked.access);
  EXPECT_EQ(0u, asked.region);
  munmap(memory_ + kPage, kPage);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, memory_, 4 * kPage, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(EFAULT, errno);
  ibv_mr* const with_hole =
      ibv_reg_mr(pd_, memory_, 4 * kPage, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(nullptr, with_hole);
  EXPECT_EQ(0, ibv_dereg_mr(with_hole));
}

TEST_F(OnDemandTest, Implicit_IsEverything) {
  ibv_mr* const all =
      ibv_reg_mr(pd_, nullptr, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
  ASSERT_NE(nullptr, all);
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(0u, asked.address);
  EXPECT_EQ(0u, asked.iova);
  EXPECT_EQ(UINT64_MAX, asked.length);
  EXPECT_EQ(0, Advise(kWrite, kFlush, 0, kPage, all->lkey));
  EXPECT_EQ(std::set<size_t>{0}, Present());
  EXPECT_EQ(0, ibv_dereg_mr(all));
}

TEST_F(OnDemandTest, Advise_BringsPagesIn_WhereThatIsWaitedFor) {
  EXPECT_TRUE(Present().empty());
  EXPECT_EQ(0, Advise(kNoFault, kFlush, 0, 4 * kPage, region_->lkey));
  EXPECT_EQ(0, Advise(kWrite, 0, 0, 4 * kPage, region_->lkey));
  EXPECT_TRUE(Present().empty());
  EXPECT_EQ(0, Advise(kWrite, kFlush, kPage + 100, kPage, region_->lkey));
  EXPECT_EQ((std::set<size_t>{1, 2}), Present());
  EXPECT_EQ(0, Advise(kRead, kFlush, 0, 1, region_->lkey));
  EXPECT_EQ((std::set<size_t>{0, 1, 2}), Present());
}

TEST_F(OnDemandTest, Advise_WrongUse_HasTheErrorOfTheManual) {
  const uint32_t key = region_->lkey;
  EXPECT_EQ(EOPNOTSUPP, Advise(static_cast<ibv_advise_mr_advice>(9), 0, 0, 1, key));
  EXPECT_EQ(EINVAL, Advise(kRead, 2, 0, 1, key));
  EXPECT_EQ(EINVAL, ibv_advise_mr(pd_, kRead, 0, nullptr, 0));
  EXPECT_EQ(ENOENT, Advise(kRead, 0, 0, 1, key + 1000));
  EXPECT_EQ(EFAULT, Advise(kRead, 0, 0, 4 * kPage + 1, key));
  ibv_pd* const other = ibv_alloc_pd(context_);
  EXPECT_EQ(EPERM, Advise(kRead, 0, 0, 1, key, other));
  EXPECT_EQ(0, ibv_dealloc_pd(other));
  ibv_mr* const ordinary = ibv_reg_mr(pd_, memory_, kPage, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(EINVAL, Advise(kRead, 0, 0, 1, ordinary->lkey));
  EXPECT_EQ(0, ibv_dereg_mr(ordinary));
  ibv_mr* const source = ibv_reg_mr(pd_, memory_, kPage, IBV_ACCESS_ON_DEMAND);
  EXPECT_EQ(EPERM, Advise(kWrite, 0, 0, 1, source->lkey));
  EXPECT_EQ(0, Advise(kRead, 0, 0, 1, source->lkey));
  EXPECT_EQ(0, ibv_dereg_mr(source));
  munmap(memory_ + 2 * kPage, kPage);
  EXPECT_EQ(EFAULT, Advise(kWrite, kFlush, 0, 4 * kPage, key));
}

}  // namespace
}  // namespace rocegw::testing
