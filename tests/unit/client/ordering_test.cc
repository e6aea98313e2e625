// SPDX-License-Identifier: Apache-2.0
// rocegwdv.h against a scripted daemon: requests to it, contents of the rings, and early refusals.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <vector>

#include "gateway/client/dv/rocegwdv.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {
namespace {

class OrderingCalls : public ::testing::Test {
 protected:
  void Start(const FakeOptions& options = {}) {
    daemon_ = std::make_unique<FakeDaemon>(options);
    setenv("ROCEGW_SOCKET", daemon_->socket_path().c_str(), 1);
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    ASSERT_NE(nullptr, list);
    for (int i = 0; i < count; ++i)
      if (rocegwdv_is_supported(list[i])) device_ = list[i];
    ASSERT_NE(nullptr, device_);
    context_ = ibv_open_device(device_);
    ibv_free_device_list(list);
    ASSERT_NE(nullptr, context_);
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, 64, nullptr, nullptr, 0);
    ASSERT_NE(nullptr, cq_);
  }
  void TearDown() override {
    if (qp_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_qp(qp_));
    }
    if (context_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_cq(cq_));
      EXPECT_EQ(0, ibv_dealloc_pd(pd_));
      EXPECT_EQ(0, ibv_close_device(context_));
    }
    daemon_.reset();
    unsetenv("ROCEGW_SOCKET");
  }
  ibv_qp* Create(const rocegwdv_qp_init_attr& dv, ibv_qp_type type = IBV_QPT_RC,
                 size_t size = sizeof(rocegwdv_qp_init_attr)) {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_;
    init.cap = {16, 16, 1, 1, 0};
    init.qp_type = type;
    errno = 0;
    return rocegwdv_create_qp(pd_, &init, &dv, size);
  }
  void Connect() {
    for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      ibv_qp_attr attr{};
      attr.qp_state = state;
      ASSERT_EQ(0, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
    }
  }
  int Post(uint32_t order, uint32_t fence, uint64_t comp_mask = 0) {
    rocegwdv_send_wr wr{};
    wr.comp_mask = comp_mask;
    wr.wr.opcode = IBV_WR_RDMA_WRITE;
    wr.execution_order = order;
    wr.fence = fence;
    rocegwdv_send_wr* bad = nullptr;
    const int error = rocegwdv_post_send(qp_, &wr, &bad);
    EXPECT_EQ(bad, error != 0 ? &wr : nullptr);
    return error;
  }
  uint32_t FlagsOf(uint32_t index) { return daemon_->LastQp().SendSlot(index)->flags; }

  std::unique_ptr<FakeDaemon> daemon_;
  ibv_device* device_ = nullptr;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

// Bits 16 to 22: enum rocegwdv_wr_opcode.
constexpr uint32_t kFurtherAtomics = 0x7F0000;

TEST_F(OrderingCalls, QueryDevice_NamesEverything_AndFitsTheCallersSize) {
  Start();
  struct {
    rocegwdv_device_attr attr;
    uint64_t later;
  } larger;
  memset(&larger, 0xFF, sizeof larger);
  ASSERT_EQ(0, rocegwdv_query_device(context_, &larger.attr, sizeof larger));
  EXPECT_EQ(0u, larger.attr.comp_mask);
  EXPECT_EQ(0x1Fu, larger.attr.service_modes);
  EXPECT_EQ(0xFu, larger.attr.execution_orders);
  EXPECT_EQ(0x7u, larger.attr.fences);
  EXPECT_EQ(0x3u, larger.attr.completion_orders);
  EXPECT_EQ(1u << IBV_WR_SEND | 1u << IBV_WR_SEND_WITH_IMM | 1u << IBV_WR_RDMA_WRITE |
                1u << IBV_WR_RDMA_WRITE_WITH_IMM | 1u << IBV_WR_RDMA_READ |
                1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD |
                kFurtherAtomics,
            larger.attr.ep_operations);
  EXPECT_EQ(kFurtherAtomics, larger.attr.qp_operations);
  EXPECT_EQ(0u, larger.later);
  rocegwdv_device_attr attr;
  memset(&attr, 0xFF, sizeof attr);
  ASSERT_EQ(0, rocegwdv_query_device(context_, &attr, 12));
  EXPECT_EQ(0x1Fu, attr.service_modes);
  EXPECT_EQ(~0u, attr.execution_orders);
  EXPECT_EQ(EINVAL, rocegwdv_query_device(context_, &attr, 4));
  EXPECT_EQ(EINVAL, rocegwdv_query_device(context_, nullptr, sizeof attr));
}

TEST_F(OrderingCalls, OlderDaemon_IsSaidSoClearly) {
  FakeOptions options;
  options.minor = 0;
  Start(options);
  rocegwdv_device_attr attr{};
  EXPECT_EQ(EOPNOTSUPP, rocegwdv_query_device(context_, &attr, sizeof attr));
  EXPECT_EQ(nullptr, Create({}));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_CREATE_QP).empty());
}

TEST_F(OrderingCalls, CreateQp_AsksForIt_AndQueryTellsIt) {
  Start();
  rocegwdv_qp_init_attr dv{};
  dv.service_mode = ROCEGWDV_SERVICE_BY_INITIATOR;
  dv.execution_order = ROCEGWDV_ORDER_RELAXED;
  dv.completion_order = ROCEGWDV_COMPLETION_ANY;
  qp_ = Create(dv);
  ASSERT_NE(nullptr, qp_);
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>();
  EXPECT_EQ(uint32_t{ROCEGW_SERVICE_BY_INITIATOR}, asked.service_mode);
  EXPECT_EQ(1u, asked.any_completion_order);
  daemon_->OnRequest(ROCEGW_MSG_QUERY_QP, [](const RecordedRequest&) {
    rocegw_query_qp_reply reply{};
    reply.path = ROCEGW_PATH_ANY_ORDER;
    const auto* bytes = reinterpret_cast<const uint8_t*>(&reply);
    return std::vector<uint8_t>(bytes, bytes + sizeof reply);
  });
  rocegwdv_qp_attr attr{};
  ASSERT_EQ(0, rocegwdv_query_qp(qp_, &attr, sizeof attr));
  EXPECT_EQ(uint32_t{ROCEGWDV_SERVICE_BY_INITIATOR}, attr.service_mode);
  EXPECT_EQ(uint32_t{ROCEGWDV_ORDER_RELAXED}, attr.execution_order);
  EXPECT_EQ(uint32_t{ROCEGWDV_COMPLETION_ANY}, attr.completion_order);
  EXPECT_EQ(uint32_t{ROCEGWDV_PATH_ANY_ORDER}, attr.path);
}

TEST_F(OrderingCalls, CreateQp_WhatThereIsNot_IsRefused) {
  Start();
  const auto refused = [&](const rocegwdv_qp_init_attr& dv, int error) {
    EXPECT_EQ(nullptr, Create(dv));
    EXPECT_EQ(error, errno);
  };
  refused({.service_mode = 4}, EINVAL);
  refused({.execution_order = 4}, EINVAL);
  refused({.completion_order = 2}, EINVAL);
  refused({.reserved = 1}, EINVAL);
  refused({.comp_mask = 1}, EOPNOTSUPP);
  refused({.service_mode = ROCEGWDV_SERVICE_UNORDERED, .execution_order = ROCEGWDV_ORDER_STRONG},
          EINVAL);
  EXPECT_EQ(nullptr, Create({}, IBV_QPT_UD));
  EXPECT_EQ(EOPNOTSUPP, errno);
  struct {
    rocegwdv_qp_init_attr attr{};
    uint64_t later = 1;
  } larger;
  EXPECT_EQ(nullptr, Create(larger.attr, IBV_QPT_RC, sizeof larger));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_CREATE_QP).empty());
}

TEST_F(OrderingCalls, PostSend_OrdersAndFences_StandInTheRing) {
  Start();
  qp_ = Create({.execution_order = ROCEGWDV_ORDER_RELAXED});
  ASSERT_NE(nullptr, qp_);
  Connect();
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_DEFAULT, 0));
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_NONE, ROCEGWDV_FENCE_READS));
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_STRONG, ROCEGWDV_FENCE_ALL));
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_DEFAULT, ROCEGWDV_FENCE_TARGET));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_ORDER_RELAXED}, FlagsOf(0));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_ORDER_NONE | ROCEGW_WQE_FENCE}, FlagsOf(1));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_FENCE_ALL}, FlagsOf(2));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_FENCE_TARGET}, FlagsOf(3));
  // Calls without orders use the default.
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_ORDER_RELAXED}, FlagsOf(4));

  EXPECT_EQ(EINVAL, Post(4, 0));
  EXPECT_EQ(EINVAL, Post(0, 8));
  EXPECT_EQ(EINVAL, Post(0, 0, 1));
  EXPECT_EQ(EINVAL, Post(ROCEGWDV_ORDER_NONE, ROCEGWDV_FENCE_TARGET));
  EXPECT_EQ(5u, daemon_->LastQp().control->sq_producer);
}

TEST_F(OrderingCalls, PostSend_UnorderedService_TakesNoOrder) {
  Start();
  qp_ = Create({.service_mode = ROCEGWDV_SERVICE_UNORDERED});
  ASSERT_NE(nullptr, qp_);
  Connect();
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_DEFAULT, ROCEGWDV_FENCE_ALL));
  EXPECT_EQ(0, Post(ROCEGWDV_ORDER_NONE, 0));
  EXPECT_EQ(EINVAL, Post(ROCEGWDV_ORDER_STRONG, 0));
  EXPECT_EQ(EINVAL, Post(ROCEGWDV_ORDER_RELAXED, 0));
  EXPECT_EQ(EINVAL, Post(ROCEGWDV_ORDER_DEFAULT, ROCEGWDV_FENCE_TARGET));
}

TEST_F(OrderingCalls, PostSend_AList_StopsAtTheFirstThatIsWrong) {
  Start();
  qp_ = Create({});
  ASSERT_NE(nullptr, qp_);
  Connect();
  rocegwdv_send_wr list[3] = {};
  for (int i = 0; i < 3; ++i) {
    list[i].wr.opcode = IBV_WR_RDMA_WRITE;
    list[i].next = i < 2 ? &list[i + 1] : nullptr;
  }
  list[2].fence = 64;
  rocegwdv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, list, &bad));
  EXPECT_EQ(&list[2], bad);
  EXPECT_EQ(2u, daemon_->LastQp().control->sq_producer);
  EXPECT_TRUE(daemon_->LastQp().DoorbellRang());
}

// A receive's slot is free when it and all before it were polled, in any order.
TEST_F(OrderingCalls, Receives_CompletedInAnyOrder_FreeTheirSlotsInOrder) {
  Start();
  qp_ = Create({.completion_order = ROCEGWDV_COMPLETION_ANY});
  ASSERT_NE(nullptr, qp_);
  Connect();
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  for (uint64_t i = 0; i < 16; ++i) {
    wr.wr_id = i;
    ASSERT_EQ(0, ibv_post_recv(qp_, &wr, &bad));
  }
  const FakeQp qp = daemon_->LastQp();
  const auto complete = [&](uint32_t slot) {
    rocegw_cqe cqe{};
    cqe.wr_id = slot;
    cqe.ring_slot = slot;
    cqe.opcode = IBV_WC_RECV;
    cqe.flags = ROCEGW_CQE_RECEIVE;
    daemon_->Complete(cq_->handle, qp.reply.worker, qp, cqe);
    ibv_wc wc;
    ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
    EXPECT_EQ(slot, wc.wr_id);
  };
  complete(2);
  complete(1);
  EXPECT_EQ(ENOMEM, ibv_post_recv(qp_, &wr, &bad));
  complete(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(0, ibv_post_recv(qp_, &wr, &bad));
  EXPECT_EQ(ENOMEM, ibv_post_recv(qp_, &wr, &bad));
}

class EndpointCalls : public OrderingCalls {
 protected:
  void MakeEndpointWithPeer(rocegwdv_peer** peer) {
    qp_ = CreateEp(Attr());
    ASSERT_NE(nullptr, qp_);
    rocegwdv_peer_attr to{};
    to.ep_num = 0x1234;
    *peer = rocegwdv_create_peer(pd_, &to, sizeof to);
    ASSERT_NE(nullptr, *peer);
  }
  rocegwdv_ep_init_attr Attr() {
    rocegwdv_ep_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {16, 16, 1, 1, 0};
    attr.key = 0x4711;
    attr.service_mode = ROCEGWDV_SERVICE_BY_INITIATOR;
    return attr;
  }
  ibv_qp* CreateEp(rocegwdv_ep_init_attr attr) {
    errno = 0;
    return rocegwdv_create_ep(pd_, &attr, sizeof attr);
  }
};

TEST_F(EndpointCalls, CreateEp_IsReadyAtOnce) {
  Start();
  rocegwdv_ep_init_attr attr = Attr();
  attr.timeout_ms = 250;
  qp_ = rocegwdv_create_ep(pd_, &attr, sizeof attr);
  ASSERT_NE(nullptr, qp_);
  EXPECT_EQ(IBV_QPT_DRIVER, qp_->qp_type);
  EXPECT_EQ(IBV_QPS_RTS, qp_->state);
  EXPECT_EQ(16u, attr.cap.max_send_wr);
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>();
  EXPECT_EQ(uint32_t{ROCEGW_QPT_ENDPOINT}, asked.type);
  EXPECT_EQ(uint32_t{ROCEGW_SERVICE_BY_INITIATOR}, asked.service_mode);
  EXPECT_EQ(250u, asked.give_up_ms);
  const auto init = daemon_->Requests(ROCEGW_MSG_MODIFY_QP).at(0).As<rocegw_modify_qp>();
  EXPECT_EQ(0x4711u, init.attr.qkey);
}

TEST_F(EndpointCalls, CreateEp_WhatThereIsNot_IsRefused) {
  Start();
  rocegwdv_ep_init_attr attr = Attr();
  attr.service_mode = ROCEGWDV_SERVICE_BY_TARGET;
  EXPECT_EQ(nullptr, CreateEp(attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  attr = Attr();
  attr.recv_cq = nullptr;
  EXPECT_EQ(nullptr, CreateEp(attr));
  EXPECT_EQ(EINVAL, errno);
  attr = Attr();
  attr.service_mode = ROCEGWDV_SERVICE_UNORDERED;
  attr.execution_order = ROCEGWDV_ORDER_STRONG;
  EXPECT_EQ(nullptr, CreateEp(attr));
  EXPECT_EQ(EINVAL, errno);
  attr = Attr();
  attr.comp_mask = 1;
  EXPECT_EQ(nullptr, CreateEp(attr));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_CREATE_QP).empty());
  // A failed set-up leaves nothing behind.
  daemon_->Fail(ROCEGW_MSG_MODIFY_QP, EACCES);
  EXPECT_EQ(nullptr, CreateEp(Attr()));
  EXPECT_EQ(EACCES, errno);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_DESTROY_QP).size());
}

TEST_F(EndpointCalls, Groups_AreMadeFirst_AndNamedByTheirMembers) {
  Start();
  rocegwdv_group_init_attr init{};
  init.key = 0x55;
  init.dispatch = ROCEGWDV_DISPATCH_DEPTH;
  rocegwdv_group* group = rocegwdv_create_group(pd_, &init, sizeof init);
  ASSERT_NE(nullptr, group);
  EXPECT_EQ(0x777u, group->group_num);
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_GROUP).As<rocegw_create_group>();
  EXPECT_EQ(0x55u, asked.key);
  EXPECT_EQ(uint32_t{ROCEGW_DISPATCH_DEPTH}, asked.dispatch);
  rocegwdv_ep_init_attr attr = Attr();
  attr.group = group;
  qp_ = CreateEp(attr);
  ASSERT_NE(nullptr, qp_);
  EXPECT_EQ(group->handle, daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().group);
  daemon_->Fail(ROCEGW_MSG_DESTROY_GROUP, EBUSY);
  EXPECT_EQ(EBUSY, rocegwdv_destroy_group(group));
  daemon_->Fail(ROCEGW_MSG_DESTROY_GROUP, 0);
  EXPECT_EQ(0, rocegwdv_destroy_group(group));
  EXPECT_EQ(EINVAL, rocegwdv_destroy_group(nullptr));
  init.dispatch = ROCEGWDV_DISPATCH_DEPTH + 1;
  EXPECT_EQ(nullptr, rocegwdv_create_group(pd_, &init, sizeof init));
  EXPECT_EQ(EINVAL, errno);
  init.dispatch = ROCEGWDV_DISPATCH_HASH;
  daemon_->Fail(ROCEGW_MSG_CREATE_GROUP, ENOSYS);
  EXPECT_EQ(nullptr, rocegwdv_create_group(pd_, &init, sizeof init));
  EXPECT_EQ(EOPNOTSUPP, errno) << "an older daemon";
}

// A program compiled before groups existed.
TEST_F(EndpointCalls, CreateEp_WithTheStructureOfOldPrograms_JoinsNothing) {
  Start();
  rocegwdv_ep_init_attr attr = Attr();
  memset(&attr.group, 0xFF, sizeof attr.group);
  qp_ = rocegwdv_create_ep(pd_, &attr, offsetof(rocegwdv_ep_init_attr, group));
  ASSERT_NE(nullptr, qp_);
  EXPECT_EQ(0u, daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().group);
}

TEST_F(EndpointCalls, PostSend_NamesThePeer_AndOnlyThere) {
  Start();
  qp_ = CreateEp(Attr());
  ASSERT_NE(nullptr, qp_);
  rocegwdv_peer_attr to{};
  to.gid.raw[15] = 9;
  to.ep_num = 0x1234;
  to.key = 0x99;
  to.sgid_index = 1;
  rocegwdv_peer* peer = rocegwdv_create_peer(pd_, &to, sizeof to);
  ASSERT_NE(nullptr, peer);
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_PEER).As<rocegw_create_peer>();
  EXPECT_EQ(0x1234u, asked.qpn);
  EXPECT_EQ(0x99u, asked.key);
  EXPECT_EQ(9, asked.av.dgid[15]);
  EXPECT_EQ(1, asked.av.sgid_index);
  rocegwdv_send_wr wr{};
  wr.wr.opcode = IBV_WR_SEND;
  wr.peer = peer;
  wr.execution_order = ROCEGWDV_ORDER_NONE;
  rocegwdv_send_wr* bad = nullptr;
  ASSERT_EQ(0, rocegwdv_post_send(qp_, &wr, &bad));
  EXPECT_NE(0u, daemon_->LastQp().SendSlot(0)->u.rdma.peer);
  EXPECT_EQ(uint32_t{ROCEGW_WQE_ORDER_NONE}, FlagsOf(0));
  wr.wr.opcode = IBV_WR_SEND_WITH_INV;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  wr.wr.opcode = IBV_WR_SEND;
  wr.peer = nullptr;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  ibv_send_wr* plain_bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr.wr, &plain_bad));
  EXPECT_EQ(1u, daemon_->LastQp().control->sq_producer);

  ASSERT_EQ(0, ibv_destroy_qp(qp_));
  qp_ = Create({});
  ASSERT_NE(nullptr, qp_);
  Connect();
  wr.peer = peer;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad)) << "a connected one has its own";
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
  EXPECT_EQ(EINVAL, rocegwdv_destroy_peer(nullptr));
  daemon_->Fail(ROCEGW_MSG_CREATE_PEER, EHOSTUNREACH);
  EXPECT_EQ(nullptr, rocegwdv_create_peer(pd_, &to, sizeof to));
  EXPECT_EQ(EHOSTUNREACH, errno);
}

TEST_F(EndpointCalls, PostSend_ReadsAndAtomics_StandInTheRing) {
  Start();
  rocegwdv_peer* peer = nullptr;
  MakeEndpointWithPeer(&peer);
  ASSERT_NE(nullptr, peer);
  ibv_sge sge{0x1000, 8, 0x77};
  rocegwdv_send_wr wr{};
  wr.peer = peer;
  wr.wr.sg_list = &sge;
  wr.wr.num_sge = 1;
  wr.wr.wr.rdma = {0xA000, 0x99};
  wr.wr.opcode = IBV_WR_RDMA_READ;
  wr.fence = ROCEGWDV_FENCE_READS;
  rocegwdv_send_wr* bad = nullptr;
  ASSERT_EQ(0, rocegwdv_post_send(qp_, &wr, &bad));
  wr.wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.wr.atomic = {0xB000, 5, 6, 0x99};
  wr.fence = 0;
  ASSERT_EQ(0, rocegwdv_post_send(qp_, &wr, &bad));
  const rocegw_send_wqe* read = daemon_->LastQp().SendSlot(0);
  EXPECT_EQ(int{ROCEGW_WR_RDMA_READ}, read->opcode);
  EXPECT_EQ(0xA000u, read->u.rdma.remote_address);
  EXPECT_EQ(0x99u, read->u.rdma.rkey);
  EXPECT_NE(0u, read->u.rdma.peer);
  EXPECT_EQ(uint32_t{ROCEGW_WQE_FENCE}, FlagsOf(0) & ROCEGW_WQE_FENCE);
  const rocegw_send_wqe* swap = daemon_->LastQp().SendSlot(1);
  EXPECT_EQ(0xB000u, swap->u.rdma.remote_address);
  EXPECT_EQ(5u, swap->u.rdma.compare_add);
  EXPECT_EQ(6u, swap->u.rdma.swap);
  EXPECT_EQ(read->u.rdma.peer, swap->u.rdma.peer);
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
}

TEST_F(EndpointCalls, Unacknowledged_IsAFlagOfEachRequest_AndTakesNoReads) {
  Start();
  rocegwdv_ep_init_attr attr = Attr();
  attr.service_mode = ROCEGWDV_SERVICE_UNACKNOWLEDGED;
  qp_ = CreateEp(attr);
  ASSERT_NE(nullptr, qp_);
  EXPECT_EQ(uint32_t{ROCEGW_SERVICE_UNORDERED},
            daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>().service_mode);
  rocegwdv_qp_attr known{};
  ASSERT_EQ(0, rocegwdv_query_qp(qp_, &known, sizeof known));
  EXPECT_EQ(uint32_t{ROCEGWDV_SERVICE_UNACKNOWLEDGED}, known.service_mode);
  rocegwdv_peer_attr to{};
  to.ep_num = 0x1234;
  rocegwdv_peer* peer = rocegwdv_create_peer(pd_, &to, sizeof to);
  ASSERT_NE(nullptr, peer);
  rocegwdv_send_wr wr{};
  wr.peer = peer;
  wr.wr.opcode = IBV_WR_SEND;
  rocegwdv_send_wr* bad = nullptr;
  ASSERT_EQ(0, rocegwdv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(uint32_t{ROCEGW_WQE_UNACKNOWLEDGED} | ROCEGW_WQE_ORDER_NONE,
            FlagsOf(0) & (ROCEGW_WQE_UNACKNOWLEDGED | ROCEGW_WQE_ORDER_NONE));
  wr.wr.opcode = IBV_WR_RDMA_READ;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  wr.wr.opcode = IBV_WR_SEND;
  wr.execution_order = ROCEGWDV_ORDER_STRONG;
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
}

TEST_F(EndpointCalls, PostSend_FurtherAtomics_CarryTheirOperand) {
  Start();
  rocegwdv_peer* peer = nullptr;
  MakeEndpointWithPeer(&peer);
  ASSERT_NE(nullptr, peer);
  ibv_sge sge = {0x4000, 8, 0x77};
  rocegwdv_send_wr wr{};
  wr.peer = peer;
  wr.wr.sg_list = &sge;
  wr.wr.num_sge = 1;
  wr.wr.wr.atomic = {0xB000, 5, 0, 0x99};
  rocegwdv_send_wr* bad = nullptr;
  for (int opcode = ROCEGWDV_WR_ATOMIC_SWAP; opcode <= ROCEGWDV_WR_ATOMIC_FETCH_SUB; ++opcode) {
    memcpy(&wr.wr.opcode, &opcode, sizeof opcode);
    ASSERT_EQ(0, rocegwdv_post_send(qp_, &wr, &bad));
    const rocegw_send_wqe* wqe = daemon_->LastQp().SendSlot(opcode - ROCEGWDV_WR_ATOMIC_SWAP);
    EXPECT_EQ(opcode, wqe->opcode);
    EXPECT_EQ(0xB000u, wqe->u.rdma.remote_address);
    EXPECT_EQ(5u, wqe->u.rdma.compare_add);
    EXPECT_EQ(0x99u, wqe->u.rdma.rkey);
  }
  const int beyond = ROCEGWDV_WR_ATOMIC_FETCH_SUB + 1;
  memcpy(&wr.wr.opcode, &beyond, sizeof beyond);
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  sge.length = 4;
  const int load = ROCEGWDV_WR_ATOMIC_LOAD;
  memcpy(&wr.wr.opcode, &load, sizeof load);
  EXPECT_EQ(EINVAL, rocegwdv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
}

TEST_F(EndpointCalls, PostSend_FurtherAtomicsOfAnOlderDaemon_AreRefusedClearly) {
  FakeOptions options;
  options.minor = 15;
  Start(options);
  rocegwdv_device_attr attr{};
  ASSERT_EQ(0, rocegwdv_query_device(context_, &attr, sizeof attr));
  EXPECT_EQ(0u, attr.ep_operations & kFurtherAtomics);
  EXPECT_EQ(0u, attr.qp_operations);
  rocegwdv_peer* peer = nullptr;
  MakeEndpointWithPeer(&peer);
  ASSERT_NE(nullptr, peer);
  rocegwdv_send_wr wr{};
  wr.peer = peer;
  rocegwdv_send_wr* bad = nullptr;
  const int swap = ROCEGWDV_WR_ATOMIC_SWAP;
  memcpy(&wr.wr.opcode, &swap, sizeof swap);
  EXPECT_EQ(EOPNOTSUPP, rocegwdv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(&wr, bad);
  ibv_send_wr plain = wr.wr;
  ibv_send_wr* bad_plain = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &plain, &bad_plain));
  EXPECT_EQ(0u, daemon_->LastQp().control->sq_producer);
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
}

// Daemons of minor 11 and less have endpoints without READs.
TEST_F(EndpointCalls, PostSend_ReadsOfAnOlderDaemon_AreRefusedClearly) {
  FakeOptions options;
  options.minor = 11;
  Start(options);
  rocegwdv_device_attr attr{};
  ASSERT_EQ(0, rocegwdv_query_device(context_, &attr, sizeof attr));
  EXPECT_EQ(0u, attr.ep_operations & 1u << IBV_WR_RDMA_READ);
  EXPECT_NE(0u, attr.ep_operations & 1u << IBV_WR_SEND);
  rocegwdv_peer* peer = nullptr;
  MakeEndpointWithPeer(&peer);
  ASSERT_NE(nullptr, peer);
  rocegwdv_send_wr wr{};
  wr.peer = peer;
  rocegwdv_send_wr* bad = nullptr;
  for (const ibv_wr_opcode opcode :
       {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    wr.wr.opcode = opcode;
    bad = nullptr;
    EXPECT_EQ(EOPNOTSUPP, rocegwdv_post_send(qp_, &wr, &bad));
    EXPECT_EQ(&wr, bad);
  }
  EXPECT_EQ(0u, daemon_->LastQp().control->sq_producer);
  EXPECT_EQ(0, rocegwdv_destroy_peer(peer));
}

}  // namespace
}  // namespace rocegw::testing
