// SPDX-License-Identifier: Apache-2.0
// States and shared receive queues of endpoints as programs see them, against a scripted daemon.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "gateway/client/dv/rocegwdv.h"
#include "tests/unit/client/attached_test.h"

namespace rocegw::testing {
namespace {

class EndpointStateCalls : public AttachedTest {
 protected:
  explicit EndpointStateCalls(const FakeOptions& options = {}) : AttachedTest(options) {}
  void SetUp() override {
    AttachedTest::SetUp();
    if (HasFatalFailure()) return;
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    ibv_srq_init_attr init{};
    init.attr = {4, 1, 0};
    srq_ = ibv_create_srq(pd_, &init);
    ASSERT_NE(nullptr, srq_);
  }
  void TearDown() override {
    if (ep_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_qp(ep_));
    }
    EXPECT_EQ(0, ibv_destroy_srq(srq_));
    EXPECT_EQ(0, ibv_destroy_cq(cq_));
    AttachedTest::TearDown();
  }
  rocegwdv_ep_init_attr Attr() {
    rocegwdv_ep_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {4, 4, 1, 1, 0};
    attr.service_mode = ROCEGWDV_SERVICE_UNORDERED;
    return attr;
  }
  ibv_qp* Create(rocegwdv_ep_init_attr attr) {
    errno = 0;
    return rocegwdv_create_ep(pd_, &attr, sizeof attr);
  }
  rocegw_create_qp Created() { return daemon_.Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>(); }

  ibv_cq* cq_ = nullptr;
  ibv_srq* srq_ = nullptr;
  ibv_qp* ep_ = nullptr;
};

TEST_F(EndpointStateCalls, Modify_AsksTheDaemon_AndShowsTheStateOfVerbs) {
  ep_ = Create(Attr());
  ASSERT_NE(nullptr, ep_);
  ASSERT_EQ(0, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_SUSPENDED, ROCEGWDV_EP_NOTIFY));
  auto asked = daemon_.Last(ROCEGW_MSG_MODIFY_EP).As<rocegw_modify_ep>();
  EXPECT_EQ(ep_->handle, asked.qp);
  EXPECT_EQ(uint32_t{ROCEGW_EP_SUSPENDED}, asked.state);
  EXPECT_EQ(1u, asked.notify);
  EXPECT_EQ(IBV_QPS_SQD, ep_->state);
  ASSERT_EQ(0, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_DRAINING, 0));
  asked = daemon_.Last(ROCEGW_MSG_MODIFY_EP).As<rocegw_modify_ep>();
  EXPECT_EQ(uint32_t{ROCEGW_EP_DRAINING}, asked.state);
  EXPECT_EQ(0u, asked.notify);
  EXPECT_EQ(IBV_QPS_RTS, ep_->state);
  ASSERT_EQ(0, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_ERROR, 0));
  EXPECT_EQ(IBV_QPS_ERR, ep_->state);
  daemon_.Fail(ROCEGW_MSG_MODIFY_EP, EINVAL);
  EXPECT_EQ(EINVAL, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_READY, 0));
  EXPECT_EQ(IBV_QPS_ERR, ep_->state);
}

TEST_F(EndpointStateCalls, Modify_OfNoEndpoint_AndUnknownFlags_AreRefused) {
  EXPECT_EQ(EINVAL, rocegwdv_modify_ep(nullptr, ROCEGWDV_EP_READY, 0));
  ep_ = Create(Attr());
  ASSERT_NE(nullptr, ep_);
  EXPECT_EQ(EINVAL, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_READY, 2));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const connected = ibv_create_qp(pd_, &init);
  ASSERT_NE(nullptr, connected);
  rocegwdv_ep_attr attr{};
  EXPECT_EQ(EINVAL, rocegwdv_modify_ep(connected, ROCEGWDV_EP_READY, 0));
  EXPECT_EQ(EINVAL, rocegwdv_query_ep(connected, &attr, sizeof attr));
  EXPECT_EQ(0, ibv_destroy_qp(connected));
  EXPECT_TRUE(daemon_.Requests(ROCEGW_MSG_MODIFY_EP).empty());
}

TEST_F(EndpointStateCalls, Query_FillsWhatTheCallerKnows) {
  ep_ = Create(Attr());
  ASSERT_NE(nullptr, ep_);
  rocegwdv_ep_attr attr{};
  ASSERT_EQ(0, rocegwdv_query_ep(ep_, &attr, sizeof attr));
  EXPECT_EQ(uint32_t{ROCEGWDV_EP_EXCEPTION}, attr.state);
  EXPECT_EQ(uint32_t{ROCEGWDV_EP_SUSPEND}, attr.on_failure);
  EXPECT_EQ(1u, attr.requests);
  EXPECT_EQ(2u, attr.messages);
  EXPECT_EQ(uint64_t{1} << 33, attr.failures);
  attr.failures = 5;
  ASSERT_EQ(0, rocegwdv_query_ep(ep_, &attr, offsetof(rocegwdv_ep_attr, failures)));
  EXPECT_EQ(5u, attr.failures);
  EXPECT_EQ(EINVAL, rocegwdv_query_ep(ep_, nullptr, sizeof attr));
  EXPECT_EQ(EINVAL, rocegwdv_query_ep(ep_, &attr, 4));
}

TEST_F(EndpointStateCalls, OnFailure_ReachesTheDaemon) {
  rocegwdv_ep_init_attr attr = Attr();
  attr.on_failure = ROCEGWDV_EP_SUSPEND;
  ep_ = Create(attr);
  ASSERT_NE(nullptr, ep_);
  EXPECT_EQ(uint32_t{ROCEGW_EP_SUSPEND}, Created().on_failure);
  attr.on_failure = ROCEGWDV_EP_SUSPEND + 1;
  EXPECT_EQ(nullptr, Create(attr));
  EXPECT_EQ(EINVAL, errno);
  attr = Attr();
  attr.reserved = 1;
  EXPECT_EQ(nullptr, Create(attr));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(EndpointStateCalls, SharedReceiveQueue_IsNamed_AndReceivesGoThere) {
  rocegwdv_ep_init_attr attr = Attr();
  attr.srq = srq_;
  ep_ = Create(attr);
  ASSERT_NE(nullptr, ep_);
  EXPECT_EQ(srq_, ep_->srq);
  EXPECT_EQ(srq_->handle, Created().srq);
  char buffer[8] = {};
  ibv_sge sge{reinterpret_cast<uint64_t>(buffer), sizeof buffer, 0x77};
  ibv_recv_wr wr{7, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_recv(ep_, &wr, &bad)) << "it has no queue of its own";
  // Completions of the queue's slots in any order free them.
  for (int round = 0; round < 3; ++round) {
    for (uint64_t id = 0; id < 4; ++id) {
      wr.wr_id = id;
      ASSERT_EQ(0, ibv_post_srq_recv(srq_, &wr, &bad));
    }
    EXPECT_EQ(ENOMEM, ibv_post_srq_recv(srq_, &wr, &bad));
    const FakeQp fake = daemon_.Qp(ep_->qp_num);
    for (const uint32_t slot : {2u, 0u, 3u, 1u}) {
      rocegw_cqe cqe{};
      cqe.wr_id = daemon_.Srq(srq_->handle).Receive(slot)->wr_id;
      cqe.opcode = IBV_WC_RECV;
      cqe.flags = ROCEGW_CQE_RECEIVE;
      cqe.ring_slot = slot;
      daemon_.Complete(cq_->handle, fake.reply.worker, fake, cqe);
      ibv_wc wc{};
      ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
      EXPECT_EQ(cqe.wr_id, wc.wr_id);
    }
  }
}

TEST_F(EndpointStateCalls, Group_NamesTheSharedReceiveQueueOfItsMembers) {
  rocegwdv_group_init_attr init{};
  init.srq = srq_;
  rocegwdv_group* const group = rocegwdv_create_group(pd_, &init, sizeof init);
  ASSERT_NE(nullptr, group);
  EXPECT_EQ(srq_->handle, daemon_.Last(ROCEGW_MSG_CREATE_GROUP).As<rocegw_create_group>().srq);
  EXPECT_EQ(0, rocegwdv_destroy_group(group));
}

class OlderEndpointStateCalls : public EndpointStateCalls {
 protected:
  OlderEndpointStateCalls() : EndpointStateCalls(Older()) {}
  static FakeOptions Older() {
    FakeOptions options;
    options.minor = 16;
    return options;
  }
};

TEST_F(OlderEndpointStateCalls, AreNotSupported) {
  ep_ = Create(Attr());
  ASSERT_NE(nullptr, ep_);
  rocegwdv_ep_attr known{};
  EXPECT_EQ(EOPNOTSUPP, rocegwdv_modify_ep(ep_, ROCEGWDV_EP_SUSPENDED, 0));
  EXPECT_EQ(EOPNOTSUPP, rocegwdv_query_ep(ep_, &known, sizeof known));
  rocegwdv_ep_init_attr attr = Attr();
  attr.srq = srq_;
  EXPECT_EQ(nullptr, Create(attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  attr = Attr();
  attr.on_failure = ROCEGWDV_EP_SUSPEND;
  EXPECT_EQ(nullptr, Create(attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  rocegwdv_group_init_attr init{};
  init.srq = srq_;
  EXPECT_EQ(nullptr, rocegwdv_create_group(pd_, &init, sizeof init));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

}  // namespace
}  // namespace rocegw::testing
