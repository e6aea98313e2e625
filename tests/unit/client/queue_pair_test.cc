// SPDX-License-Identifier: Apache-2.0
// Queue pairs of programs, connected ones and for datagrams, and forks of a program that has them.
#include "gateway/client/queues/queue_pair.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(QpTest, CreateQp_RequestAndResult) {
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>();
  EXPECT_EQ(pd_->handle, asked.pd);
  EXPECT_EQ(cq_->handle, asked.send_cq);
  EXPECT_EQ(cq_->handle, asked.recv_cq);
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPT_RC), asked.type);
  EXPECT_EQ(10u, asked.max_send_wr);
  EXPECT_EQ(20u, asked.max_recv_wr);
  EXPECT_EQ(2u, asked.max_send_sge);
  EXPECT_EQ(3u, asked.max_recv_sge);
  EXPECT_EQ(32u, asked.max_inline);
  EXPECT_NE(0u, asked.cookie);
  EXPECT_EQ(16u, cap_.max_send_wr) << "what was given is written back";
  EXPECT_EQ(32u, cap_.max_recv_wr);
  EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  EXPECT_EQ(&init_context_, qp_->qp_context);
  EXPECT_EQ(pd_, qp_->pd);
  EXPECT_EQ(cq_, qp_->send_cq);
  EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(qp_));
}

TEST_F(QpTest, CreateQp_WhatWeDoNotHave_IsRefusedPolitely) {
  errno = 0;
  ibv_qp_init_attr init = InitAttr(IBV_QPT_RAW_PACKET);
  EXPECT_EQ(nullptr, ibv_create_qp(pd_, &init));
  EXPECT_EQ(EOPNOTSUPP, errno);
  init = InitAttr();
  init.send_cq = nullptr;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_, &init));
  EXPECT_EQ(EINVAL, errno);
  ibv_qp_init_attr_ex extended{};
  extended.qp_type = IBV_QPT_RC;
  extended.send_cq = extended.recv_cq = cq_;
  extended.cap = {1, 1, 1, 1, 0};
  extended.pd = pd_;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_, &extended));
  EXPECT_EQ(EOPNOTSUPP, errno);
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  ibv_qp* plain = ibv_create_qp_ex(context_, &extended);
  ASSERT_NE(nullptr, plain) << "an empty wish is no wish";
  EXPECT_EQ(0, ibv_destroy_qp(plain));
}

TEST_F(QpTest, CreateQp_Unreliable_HasSendsAndWritesOnly) {
  ibv_qp_init_attr_ex extended{};
  extended.qp_type = IBV_QPT_UC;
  extended.send_cq = extended.recv_cq = cq_;
  extended.cap = {1, 1, 1, 1, 0};
  extended.pd = pd_;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  extended.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
  ibv_qp* const qp = ibv_create_qp_ex(context_, &extended);
  ASSERT_NE(nullptr, qp);
  EXPECT_EQ(uint32_t{ROCEGW_QPT_UC}, daemon_->Qp(qp->qp_num).request.type);
  EXPECT_EQ(IBV_QPT_UC, qp->qp_type);
  EXPECT_EQ(0, ibv_destroy_qp(qp));
  extended.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_, &extended));
  EXPECT_EQ(EOPNOTSUPP, errno);
}

TEST_F(QpTest, ModifyQp_SendsOnlyWhatTheMaskNames) {
  ibv_qp_attr attr;
  memset(static_cast<void*>(&attr), 0x5a, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_2048;
  attr.dest_qp_num = 0x777;
  attr.rq_psn = 0x123456;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.ah_attr = {};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.sl = 3;
  attr.ah_attr.grh.dgid.raw[15] = 9;
  attr.ah_attr.grh.sgid_index = 2;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.grh.traffic_class = 106;
  attr.ah_attr.grh.flow_label = 0x12345;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ASSERT_EQ(0, ibv_modify_qp(qp_, &attr, mask));
  const auto asked = daemon_->Last(ROCEGW_MSG_MODIFY_QP).As<rocegw_modify_qp>();
  EXPECT_EQ(qp_->handle, asked.qp);
  EXPECT_EQ(static_cast<uint32_t>(mask), asked.attr_mask);
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_RTR), asked.attr.qp_state);
  EXPECT_EQ(static_cast<uint32_t>(IBV_MTU_2048), asked.attr.path_mtu);
  EXPECT_EQ(0x777u, asked.attr.dest_qpn);
  EXPECT_EQ(0x123456u, asked.attr.rq_psn);
  EXPECT_EQ(4, asked.attr.max_dest_rd_atomic);
  EXPECT_EQ(12, asked.attr.min_rnr_timer);
  EXPECT_EQ(3, asked.attr.service_level);
  EXPECT_EQ(9, asked.attr.av.dgid[15]);
  EXPECT_EQ(2, asked.attr.av.sgid_index);
  EXPECT_EQ(64, asked.attr.av.hop_limit);
  EXPECT_EQ(106, asked.attr.av.traffic_class);
  EXPECT_EQ(0x12345u, asked.attr.av.flow_label);
  EXPECT_EQ(0u, asked.attr.qkey);
  EXPECT_EQ(0u, asked.attr.sq_psn);
  EXPECT_EQ(0, asked.attr.timeout);
  EXPECT_EQ(IBV_QPS_RTR, qp_->state);

  ibv_qp_attr back;
  ibv_qp_init_attr init;
  ASSERT_EQ(0, ibv_query_qp(qp_, &back, IBV_QP_STATE, &init));
  EXPECT_EQ(0x777u, back.dest_qp_num);
  EXPECT_EQ(1, back.ah_attr.is_global);
  EXPECT_EQ(9, back.ah_attr.grh.dgid.raw[15]);
  EXPECT_EQ(16u, init.cap.max_send_wr);
  EXPECT_EQ(cq_, init.send_cq);
}

TEST_F(QpTest, Query_WhatTheDaemonMovedToAnErrorState_TakesRequestsToFlush) {
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad)) << "not in RTS yet";
  daemon_->OnRequest(ROCEGW_MSG_QUERY_QP, [](const RecordedRequest&) {
    rocegw_query_qp_reply reply{};
    reply.attr.qp_state = IBV_QPS_ERR;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&reply);
    return std::vector<uint8_t>(bytes, bytes + sizeof reply);
  });
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(0, ibv_query_qp(qp_, &attr, IBV_QP_CAP, &init));
  EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad));
  ASSERT_EQ(0, ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(IBV_QPS_ERR, qp_->state);
  EXPECT_EQ(0, ibv_post_send(qp_, &wr, &bad)) << "its rings know it as well";
}

TEST_F(QpTest, Query_WhoseAnswerIsOlderThanAMoveOfTheLibrary_AsksAgainAndKeepsTheMove) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) ToState(state);
  std::atomic<int> asked = 0;
  daemon_->OnRequest(ROCEGW_MSG_QUERY_QP, [&](const RecordedRequest&) {
    rocegw_query_qp_reply reply{};
    reply.attr.qp_state = ++asked == 1 ? IBV_QPS_RTS : IBV_QPS_ERR;
    // Another thread disconnects while the first answer is on its way.
    if (asked == 1) client::SetState(qp_, IBV_QPS_ERR);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&reply);
    return std::vector<uint8_t>(bytes, bytes + sizeof reply);
  });
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  ASSERT_EQ(0, ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(2, asked.load());
  EXPECT_EQ(IBV_QPS_ERR, attr.qp_state);
  EXPECT_EQ(IBV_QPS_ERR, qp_->state);
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(0, ibv_post_send(qp_, &wr, &bad))
      << "flushed, not refused: its rings know the state too";
}

TEST_F(QpTest, Ece_IsAskedOfTheDaemonAndSetBeforeRtrOnly) {
  ibv_ece ece = {1, 2, 3};
  ASSERT_EQ(0, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(0x02BADDu, ece.vendor_id);
  EXPECT_EQ(7u, ece.options);
  EXPECT_EQ(0u, ece.comp_mask);
  ece.options = 0x15;
  ASSERT_EQ(0, ibv_set_ece(qp_, &ece));
  EXPECT_EQ(5u, ece.options) << "what was accepted comes back";
  EXPECT_EQ(qp_->handle, daemon_->Last(ROCEGW_MSG_SET_ECE).As<rocegw_set_ece>().qp);
  ece.comp_mask = 1;
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, &ece));
  ece.comp_mask = 0;
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, nullptr));
  EXPECT_EQ(EINVAL, ibv_query_ece(qp_, nullptr));
  ToState(IBV_QPS_INIT);
  EXPECT_EQ(0, ibv_set_ece(qp_, &ece));
  ToState(IBV_QPS_RTR);
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, &ece));
  EXPECT_EQ(0, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(2u, daemon_->Requests(ROCEGW_MSG_SET_ECE).size());
}

TEST_F(QpTest, Ece_OfAnOlderDaemon_IsNotSupported) {
  daemon_->Fail(ROCEGW_MSG_QUERY_ECE, ENOSYS);
  daemon_->Fail(ROCEGW_MSG_SET_ECE, ENOSYS);
  ibv_ece ece = {};
  EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(qp_, &ece));
}

TEST_F(QpTest, ModifyQp_AddressWithoutGid_IsRefusedHere) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_AV));
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp_, &attr, IBV_QP_ALT_PATH));
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_MODIFY_QP).empty());
}

// Old MPI libraries name it.
TEST_F(QpTest, ModifyQp_PathMigrationState_MigratedIsAccepted) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.path_mig_state = IBV_MIG_REARM;
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
  attr.path_mig_state = IBV_MIG_MIGRATED;
  EXPECT_EQ(0, ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
  const auto asked = daemon_->Last(ROCEGW_MSG_MODIFY_QP).As<rocegw_modify_qp>();
  EXPECT_EQ(static_cast<uint32_t>(IBV_QP_STATE), asked.attr_mask);
  attr.qp_state = IBV_QPS_INIT;
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
}

TEST_F(QpTest, ModifyQp_Refused_ChangesNothingHere) {
  daemon_->Fail(ROCEGW_MSG_MODIFY_QP, EINVAL);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
  EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad));
}

TEST_F(QpTest, PostAndPoll_ThroughSharedMemory) {
  ToState(IBV_QPS_RTS);
  strcpy(buffer_, "payload");
  ibv_sge sge = Sge(0, 8);
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  EXPECT_TRUE(fake.DoorbellRang());
  EXPECT_EQ(1u, fake.control->sq_producer);
  EXPECT_EQ(1u, fake.SendSlot(0)->wr_id);
  EXPECT_EQ(ROCEGW_WQE_COPIED | ROCEGW_WQE_SIGNALED, fake.SendSlot(0)->flags);
  EXPECT_STREQ("payload", reinterpret_cast<char*>(fake.SendPayload(0)));

  rocegw_cqe cqe{};
  cqe.wr_id = fake.SendSlot(0)->wr_id;
  cqe.opcode = IBV_WC_SEND;
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, cqe);
  ibv_wc wc;
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(1u, wc.wr_id);
  EXPECT_EQ(qp_->qp_num, wc.qp_num);
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, Receive_PayloadFromTheRing_LandsInTheBuffer) {
  ToState(IBV_QPS_INIT);
  ibv_sge sge = Sge(100, 64);
  ibv_recv_wr wr{};
  wr.wr_id = 5;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  EXPECT_EQ(1u, fake.control->rq_producer);
  memcpy(fake.ReceivePayload(0), "incoming", 9);
  rocegw_cqe cqe{};
  cqe.wr_id = 5;
  cqe.opcode = static_cast<uint8_t>(IBV_WC_RECV);
  cqe.byte_length = 9;
  cqe.flags = ROCEGW_CQE_RECEIVE | ROCEGW_CQE_PAYLOAD_IN_RING;
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, cqe);
  ibv_wc wc;
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(IBV_WC_RECV, wc.opcode);
  EXPECT_STREQ("incoming", buffer_ + 100);
}

TEST_F(QpTest, ResizeCq_WhatWaitsIsPolledFromTheNewRings) {
  ibv_sge sge = Sge(0, 16);
  const auto complete = [&](uint64_t id) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
    rocegw_cqe cqe{};
    cqe.wr_id = id;
    cqe.ring_slot = static_cast<uint32_t>(id);
    Fake().status->sq_released = static_cast<uint32_t>(id) + 1;
    daemon_->Complete(cq_->handle, Fake().reply.worker, Fake(), cqe);
  };
  ToState(IBV_QPS_INIT);
  ToState(IBV_QPS_RTR);
  ToState(IBV_QPS_RTS);
  ibv_wc wc{};
  for (uint64_t id = 0; id < 5; ++id) complete(id);
  for (uint64_t id = 0; id < 3; ++id) ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  ASSERT_EQ(0, ibv_resize_cq(cq_, 100));
  EXPECT_EQ(128, cq_->cqe);
  EXPECT_EQ(100u, daemon_->Last(ROCEGW_MSG_RESIZE_CQ).As<rocegw_resize_cq>().entries);
  complete(5);
  for (uint64_t id = 3; id < 6; ++id) {
    ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
    EXPECT_EQ(id, wc.wr_id);
  }
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
  complete(6);
  daemon_->Fail(ROCEGW_MSG_RESIZE_CQ, EINVAL);
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq_, 4));
  EXPECT_EQ(128, cq_->cqe);
  EXPECT_EQ(1, ibv_poll_cq(cq_, 1, &wc)) << "it goes on as it was";
  EXPECT_EQ(EINVAL, ibv_resize_cq(cq_, 0));
  daemon_->Fail(ROCEGW_MSG_RESIZE_CQ, ENOSYS);
  EXPECT_EQ(EOPNOTSUPP, ibv_resize_cq(cq_, 64)) << "an older daemon";
}

TEST_F(QpTest, ModifyCq_TellsTheDaemon) {
  ibv_modify_cq_attr attr{};
  EXPECT_EQ(0, ibv_modify_cq(cq_, &attr));
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {8, 100};
  EXPECT_EQ(0, ibv_modify_cq(cq_, &attr));
  const auto asked = daemon_->Last(ROCEGW_MSG_MODERATE_CQ).As<rocegw_moderate_cq>();
  EXPECT_EQ(cq_->handle, asked.cq);
  EXPECT_EQ(8u, asked.count);
  EXPECT_EQ(100u, asked.period);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_MODERATE_CQ).size());
  attr.attr_mask = 2;
  EXPECT_EQ(EINVAL, ibv_modify_cq(cq_, &attr));
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  daemon_->Fail(ROCEGW_MSG_MODERATE_CQ, ENOSYS);
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_cq(cq_, &attr));
}

TEST_F(QpTest, Reset_ForgetsWhatWasPostedAndCompleted) {
  ToState(IBV_QPS_RTS);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(ENOMEM, ibv_post_send(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, rocegw_cqe{});
  ToState(IBV_QPS_RESET);
  ibv_wc wc;
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad));
  ToState(IBV_QPS_RTS);
  EXPECT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(17u, fake.control->sq_producer);
}

TEST_F(QpTest, DestroyQp_ItsCompletionsDisappear) {
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, 0, fake, rocegw_cqe{});
  ASSERT_EQ(0, ibv_destroy_qp(qp_));
  qp_ = nullptr;
  ibv_wc wc;
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, SleepingWorker_IsWokenThroughItsDescriptor) {
  ToState(IBV_QPS_RTS);
  const FakeQp fake = Fake();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_FALSE(daemon_->WasWoken(fake.reply.worker));
  daemon_->SetNeedWakeup(fake.reply.worker, true);
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_TRUE(daemon_->WasWoken(fake.reply.worker));
}

TEST_F(QpTest, EightThreads_PostAndCreateAndDestroyTogether) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        ibv_qp_init_attr init = InitAttr();
        ibv_qp* qp = ibv_create_qp(pd_, &init);
        ibv_mr* mr = ibv_reg_mr(pd_, buffer_, 256, IBV_ACCESS_LOCAL_WRITE);
        if (qp == nullptr || mr == nullptr) {
          ++failures;
          return;
        }
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RTS;
        failures += ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0;
        ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr->lkey};
        ibv_send_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        failures += ibv_post_send(qp, &wr, &bad) != 0;
        ibv_wc wc;
        failures += ibv_poll_cq(cq_, 1, &wc) != 0;
        failures += ibv_destroy_qp(qp) != 0;
        failures += ibv_dereg_mr(mr) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, failures);
}

class DatagramTest : public QpTest {
 protected:
  void SetUp() override { Prepare({}, IBV_QPT_UD); }
};

TEST_F(DatagramTest, CreateAh_ChecksTheSourceGid) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_ah(pd_, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.is_global = 1;
  attr.grh.sgid_index = 1;  // unused
  EXPECT_EQ(nullptr, ibv_create_ah(pd_, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.grh.sgid_index = 2;
  attr.grh.dgid.raw[15] = 77;
  ibv_ah* ah = ibv_create_ah(pd_, &attr);
  ASSERT_NE(nullptr, ah);
  EXPECT_EQ(pd_, ah->pd);

  ToState(IBV_QPS_RTS);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 0x99;
  wr.wr.ud.remote_qkey = 0x11111111;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  const rocegw_send_wqe* wqe = Fake().SendSlot(0);
  EXPECT_EQ(77, wqe->u.ud.av.dgid[15]);
  EXPECT_EQ(2, wqe->u.ud.av.sgid_index);
  EXPECT_EQ(0x99u, wqe->u.ud.remote_qpn);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(DatagramTest, CreateAhFromWc_AnswersTheSender) {
  uint8_t grh[40] = {};
  grh[20] = 0x45;  // an IPv4 header in the second half
  grh[21] = 0x20;
  grh[32] = 10;
  grh[35] = 200;  // from 10.0.0.200
  grh[36] = 10;
  grh[39] = 2;  // to 10.0.0.2, which is GID 2
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  wc.sl = 0xa;  // says that it came over IPv4, and is no service level to answer with
  ibv_ah_attr attr;
  ASSERT_EQ(0, ibv_init_ah_from_wc(context_, 1, &wc, reinterpret_cast<ibv_grh*>(grh), &attr));
  EXPECT_EQ(2, attr.grh.sgid_index);
  EXPECT_EQ(0xff, attr.grh.dgid.raw[11]);
  EXPECT_EQ(200, attr.grh.dgid.raw[15]);
  EXPECT_EQ(0x20, attr.grh.traffic_class);
  EXPECT_EQ(0, attr.sl);
  ibv_ah* ah = ibv_create_ah_from_wc(pd_, &wc, reinterpret_cast<ibv_grh*>(grh), 1);
  ASSERT_NE(nullptr, ah);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
  wc.wc_flags = 0;
  EXPECT_EQ(nullptr, ibv_create_ah_from_wc(pd_, &wc, reinterpret_cast<ibv_grh*>(grh), 1));
}

// Runs `body` in a forked child; its result is the child's exit status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TEST_F(QpTest, Fork_ChildCannotReachTheParentsQueues) {
  ToState(IBV_QPS_RTS);
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, rocegw_cqe{});
  const size_t connections = daemon_->connections();
  const size_t hangups = daemon_->hangups();
  EXPECT_EQ(0, InChild([&] {
              ibv_wc wc;
              if (ibv_poll_cq(cq_, 1, &wc) != 0) return 1;
              ibv_send_wr wr{};
              wr.opcode = IBV_WR_SEND;
              ibv_send_wr* bad = nullptr;
              ibv_post_send(qp_, &wr, &bad);
              if (ibv_alloc_pd(context_) != nullptr || errno != EIO) return 2;
              if (ibv_destroy_qp(qp_) != 0) return 3;
              if (ibv_destroy_cq(cq_) != 0) return 4;
              if (ibv_dereg_mr(mr_) != 0) return 5;
              return 0;
            }));
  EXPECT_EQ(0u, fake.control->sq_producer);
  EXPECT_FALSE(fake.DoorbellRang());
  ibv_wc wc;
  EXPECT_EQ(1, ibv_poll_cq(cq_, 1, &wc)) << "the parent still has what is its own";
  EXPECT_EQ(connections, daemon_->connections());
  EXPECT_EQ(hangups, daemon_->hangups());
}

TEST_F(QpTest, Fork_ChildAttachesOnItsOwn) {
  const size_t connections = daemon_->connections();
  const size_t hangups = daemon_->hangups();
  EXPECT_EQ(0, InChild([&] {
              ibv_device* device = FindDevice("rocegw0");
              if (device != context_->device) return 1;
              ibv_context* context = ibv_open_device(device);
              if (context == nullptr) return 2;
              ibv_pd* pd = ibv_alloc_pd(context);
              if (pd == nullptr) return 3;
              ibv_mr* mr = ibv_reg_mr(pd, buffer_, 64, IBV_ACCESS_LOCAL_WRITE);
              if (mr == nullptr) return 4;
              if (ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0) return 5;
              return ibv_close_device(context);
            }));
  // A connection for the list of devices, one for the device.
  EXPECT_EQ(connections + 2, daemon_->connections());
  EXPECT_TRUE(daemon_->WaitForHangups(hangups + 2));
  ibv_port_attr port;
  EXPECT_EQ(0, ibv_query_port(context_, 1, &port));
}

TEST_F(QpTest, Fork_WhileOtherThreadsWork_ChildIsNotStuck) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      ibv_wc wc;
      ibv_port_attr port;
      while (!stop) {
        ibv_poll_cq(cq_, 1, &wc);
        ibv_query_port(context_, 1, &port);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(0, InChild([&] {
                ibv_wc wc;
                if (ibv_poll_cq(cq_, 1, &wc) != 0) return 1;
                return FindDevice("rocegw0") != nullptr ? 0 : 2;
              }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rocegw::testing
