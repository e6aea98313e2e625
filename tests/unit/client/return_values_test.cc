// SPDX-License-Identifier: Apache-2.0
// Calls that return the value of errno set errno too, as kernel providers do: a table of calls,
// each refused by the daemon once and then done.
#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

class ReturnValues : public QpTest {
 protected:
  // The daemon refuses the first call.
  template <typename Call>
  void ExpectRefusal(const char* name, uint32_t type, int error, Call call) {
    SCOPED_TRACE(name);
    daemon_->Fail(type, error);
    errno = 0;
    EXPECT_EQ(error, call());
    EXPECT_EQ(error, errno);
    daemon_->Fail(type, 0);
    errno = 0;
    EXPECT_EQ(0, call());
    EXPECT_EQ(0, errno);
  }
};

TEST_F(ReturnValues, DestroyCalls) {
  ExpectRefusal("ibv_dereg_mr", ROCEGW_MSG_DEREG_MR, EBUSY, [&] { return ibv_dereg_mr(mr_); });
  mr_ = nullptr;
  ExpectRefusal("ibv_destroy_qp", ROCEGW_MSG_DESTROY_QP, EBUSY,
                [&] { return ibv_destroy_qp(qp_); });
  qp_ = nullptr;
  ExpectRefusal("ibv_destroy_cq", ROCEGW_MSG_DESTROY_CQ, EBUSY,
                [&] { return ibv_destroy_cq(cq_); });
  cq_ = nullptr;
  ExpectRefusal("ibv_destroy_comp_channel", ROCEGW_MSG_DESTROY_CHANNEL, EBUSY,
                [&] { return ibv_destroy_comp_channel(channel_); });
  channel_ = nullptr;
  ibv_srq_init_attr srq_attr{nullptr, {4, 1, 0}};
  ibv_srq* srq = ibv_create_srq(pd_, &srq_attr);
  ASSERT_NE(nullptr, srq);
  ExpectRefusal("ibv_destroy_srq", ROCEGW_MSG_DESTROY_SRQ, EBUSY,
                [&] { return ibv_destroy_srq(srq); });
  // The test's daemon has no windows.
  daemon_->OnRequest(ROCEGW_MSG_ALLOC_MW, [](const RecordedRequest&) {
    return std::vector<uint8_t>(sizeof(rocegw_mw_reply));
  });
  ibv_mw* mw = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_NE(nullptr, mw);
  daemon_->OnRequest(ROCEGW_MSG_DEALLOC_MW, [](const RecordedRequest&) {
    return std::vector<uint8_t>(sizeof(rocegw_object_reply));
  });
  ExpectRefusal("ibv_dealloc_mw", ROCEGW_MSG_DEALLOC_MW, EBUSY, [&] { return ibv_dealloc_mw(mw); });
  ExpectRefusal("ibv_dealloc_pd", ROCEGW_MSG_DEALLOC_PD, EBUSY,
                [&] { return ibv_dealloc_pd(pd_); });
  pd_ = nullptr;
}

TEST_F(ReturnValues, ModifyAndQuery) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  attr.qp_state = IBV_QPS_INIT;
  ExpectRefusal("ibv_query_qp", ROCEGW_MSG_QUERY_QP, EINVAL,
                [&] { return ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init); });
  attr.qp_state = IBV_QPS_INIT;
  ExpectRefusal("ibv_modify_qp", ROCEGW_MSG_MODIFY_QP, EINVAL,
                [&] { return ibv_modify_qp(qp_, &attr, IBV_QP_STATE); });
}

TEST_F(ReturnValues, InUse_IsBusy) {
  errno = 0;
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel_)) << "of a completion queue";
  EXPECT_EQ(EBUSY, errno);

  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid.raw[15] = 9;
  ibv_pd* pd = ibv_alloc_pd(context_);
  ibv_ah* ah = ibv_create_ah(pd, &attr);
  ASSERT_NE(nullptr, ah);
  errno = 0;
  EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd)) << "of an address handle";
  EXPECT_EQ(EBUSY, errno);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
  EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

}  // namespace
}  // namespace rocegw::testing
