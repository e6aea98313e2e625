// SPDX-License-Identifier: Apache-2.0
// Thread and parent domains: objects of a parent domain belong to its protection domain, and
// domains in use stay.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>

#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class DomainsTest : public AttachedTest {
 protected:
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    ibv_td_init_attr attr{};
    td_ = ibv_alloc_td(context_, &attr);
    ASSERT_NE(nullptr, td_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_dealloc_td(td_));
    AttachedTest::TearDown();
  }
  ibv_pd* Parent(ibv_pd* pd, ibv_td* td, uint32_t mask = 0) {
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd;
    attr.td = td;
    attr.comp_mask = mask;
    errno = 0;
    return ibv_alloc_parent_domain(context_, &attr);
  }

  ibv_td* td_ = nullptr;
};

TEST_F(DomainsTest, WhatIsMadeInAParentDomain_IsMadeInItsProtectionDomain) {
  ibv_pd* const parent = Parent(pd_, td_, IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT);
  ASSERT_NE(nullptr, parent);
  EXPECT_EQ(context_, parent->context);
  char buffer[64];
  ibv_mr* const mr = ibv_reg_mr(parent, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(parent, mr->pd);
  EXPECT_EQ(pd_->handle, daemon_.Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>().pd);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
  const size_t before = daemon_.Requests(ROCEGW_MSG_DEALLOC_PD).size();
  EXPECT_EQ(0, ibv_dealloc_pd(parent));
  EXPECT_EQ(before, daemon_.Requests(ROCEGW_MSG_DEALLOC_PD).size()) << "the daemon knows of one";
}

TEST_F(DomainsTest, InUse_StaysUntilItsUsersAreGone) {
  ibv_pd* const parent = Parent(pd_, td_);
  ibv_pd* const second = Parent(parent, nullptr);
  ASSERT_NE(nullptr, second);
  EXPECT_EQ(EBUSY, ibv_dealloc_td(td_));
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd_));
  EXPECT_EQ(0, ibv_dealloc_pd(parent));
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd_)) << "the second one is of the same protection domain";
  EXPECT_EQ(0, ibv_dealloc_pd(second));
}

TEST_F(DomainsTest, CompletionQueue_TakesAParentDomainOnly) {
  ibv_pd* const parent = Parent(pd_, td_);
  ibv_cq_init_attr_ex attr{};
  attr.cqe = 16;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = pd_;
  EXPECT_EQ(nullptr, ibv_create_cq_ex(context_, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.parent_domain = parent;
  ibv_cq_ex* const cq = ibv_create_cq_ex(context_, &attr);
  ASSERT_NE(nullptr, cq);
  EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
  EXPECT_EQ(0, ibv_dealloc_pd(parent));
}

TEST_F(DomainsTest, WrongWishes) {
  EXPECT_EQ(nullptr, Parent(nullptr, td_));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, Parent(pd_, td_, 8));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, Parent(pd_, td_, IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS));
  EXPECT_EQ(EOPNOTSUPP, errno);
  ibv_td_init_attr attr{};
  attr.comp_mask = 1;
  EXPECT_EQ(nullptr, ibv_alloc_td(context_, &attr));
  EXPECT_EQ(EINVAL, errno);
}

}  // namespace
}  // namespace rocegw::testing
