// SPDX-License-Identifier: Apache-2.0
// Shared receive queues through the attach protocol.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

class SharedQueues : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client.Hello());
    context = client.OpenContext();
    pd = client.AllocPd(context);
    cq = client.CreateCq(context).handle;
    ASSERT_NE(cq, 0u);
  }
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  rocegw_srq_reply Create(uint32_t max_wr = 100, uint32_t max_sge = 3, uint32_t limit = 0) {
    auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    request.pd = pd;
    request.max_wr = max_wr;
    request.max_sge = max_sge;
    request.limit = limit;
    request.cookie = 77;
    return client.Call<rocegw_srq_reply>(request);
  }
  rocegw_qp_reply CreateQp(uint32_t srq, uint32_t type = ROCEGW_QPT_RC) {
    auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    request.pd = pd;
    request.send_cq = request.recv_cq = cq;
    request.type = type;
    request.max_send_wr = 8;
    request.max_send_sge = 1;
    request.srq = srq;
    return client.Call<rocegw_qp_reply>(request);
  }
  int Arm(uint32_t srq, uint32_t limit, uint32_t mask = ROCEGW_SRQ_LIMIT) {
    auto request = TestClient::Request<rocegw_modify_srq>(ROCEGW_MSG_MODIFY_SRQ);
    request.srq = srq;
    request.mask = mask;
    request.limit = limit;
    client.Call<rocegw_object_reply>(request);
    return client.error();
  }
  rocegw_srq_reply Resize(uint32_t srq, uint32_t max_wr, uint32_t mask = ROCEGW_SRQ_MAX_WR,
                          uint32_t limit = 0) {
    auto request = TestClient::Request<rocegw_modify_srq>(ROCEGW_MSG_MODIFY_SRQ);
    request.srq = srq;
    request.mask = mask;
    request.limit = limit;
    request.max_wr = max_wr;
    return client.Call<rocegw_srq_reply>(request);
  }
  rocegw_query_srq_reply Query(uint32_t srq) {
    auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_SRQ);
    request.handle = srq;
    return client.Call<rocegw_query_srq_reply>(request);
  }
  FakeWorker::Session& On(size_t worker) { return host.workers[worker]->sessions.begin()->second; }
  // Returns the worker of the queue.
  size_t WorkerOf(uint32_t srq) { return On(0).srqs.contains(srq) ? 0 : 1; }

  SessionHost host;
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t cq = 0;
};

TEST_F(SharedQueues, Create_PlacesSlotsAndTheirOrder_AndTellsOneWorker) {
  const rocegw_srq_reply srq = Create(100, 3, 10);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(srq.entries, 128u);
  EXPECT_EQ(srq.max_sge, 3u);
  EXPECT_EQ(srq.payload_stride, 1024u);
  EXPECT_EQ(srq.order.length, 128u * 4);
  EXPECT_EQ(srq.slots.length, 128u * rocegw_rq_stride(3));
  EXPECT_EQ(srq.payload.length, 128u * 1024);
  EXPECT_FALSE(client.chunks[srq.order.chunk].read_only);
  EXPECT_FALSE(client.chunks[srq.slots.chunk].read_only);
  EXPECT_TRUE(client.chunks[srq.payload.chunk].read_only);
  EXPECT_EQ(On(0).srqs.size() + On(1).srqs.size(), 1u);
  const verbs::SrqConfig& config = On(WorkerOf(srq.handle)).srqs[srq.handle];
  EXPECT_EQ(config.entries, 128u);
  EXPECT_EQ(config.stride, rocegw_rq_stride(3));
  EXPECT_EQ(config.limit, 10u);
  EXPECT_EQ(config.cookie, 77u);
  reinterpret_cast<rocegw_srq_control*>(client.At(srq.control))->producer = 9;
  EXPECT_EQ(config.control->producer, 9u);
}

TEST_F(SharedQueues, DeepOne_HasNoRoomForPayloads) {
  const rocegw_srq_reply srq = Create(4096, 1);
  EXPECT_EQ(srq.payload_stride, 0u);
  EXPECT_EQ(srq.payload.length, 0u);
}

TEST_F(SharedQueues, AllQueuePairs_AreOnItsWorker_AndHaveNoReceivesOfTheirOwn) {
  const uint32_t one = Create().handle;
  const uint32_t two = Create().handle;
  EXPECT_NE(WorkerOf(one), WorkerOf(two)) << "queues are spread";
  for (int i = 0; i < 5; ++i) {
    const rocegw_qp_reply qp = CreateQp(one, i % 2 == 0 ? ROCEGW_QPT_RC : ROCEGW_QPT_UD);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.worker, WorkerOf(one));
    EXPECT_EQ(qp.rq_entries, 0u);
    EXPECT_EQ(qp.rq.length, 0u);
    const verbs::QpConfig& config = On(qp.worker).qps[qp.qpn].config;
    EXPECT_EQ(config.srq, one);
    EXPECT_EQ(config.srq_pd, pd);
    EXPECT_EQ(config.rq_entries, 128u);
    EXPECT_EQ(config.max_recv_sge, 3u);
    EXPECT_EQ(config.rq_payload_stride, 1024u);
    EXPECT_NE(config.rq_payload, nullptr);
  }
  EXPECT_EQ(CreateQp(two).worker, WorkerOf(two));
}

TEST_F(SharedQueues, ModifyAndQuery_TheLimit) {
  const uint32_t srq = Create().handle;
  EXPECT_EQ(Query(srq).limit, 0u);
  EXPECT_EQ(Arm(srq, 128), 0);
  const rocegw_query_srq_reply now = Query(srq);
  EXPECT_EQ(now.limit, 128u);
  EXPECT_EQ(now.max_wr, 128u);
  EXPECT_EQ(now.max_sge, 3u);
  EXPECT_EQ(Arm(srq, 129), EINVAL);
  EXPECT_EQ(Arm(srq, 1, 4), EINVAL);
  EXPECT_EQ(Arm(srq + 1, 1), EINVAL);
  Query(srq + 1);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(SharedQueues, Snapshot_HasARowForEach_AlsoDuringADrain) {
  const rocegw_srq_reply one = Create(100, 3, 10);
  reinterpret_cast<rocegw_srq_control*>(client.At(one.control))->producer = 9;
  CreateQp(one.handle);
  const uint32_t other = Create(8).handle;
  host.server->OrderDrainLocally(true);
  std::vector<session::SrqRow> rows;
  host.server->Snapshot({.srqs = true},
                        [&](const session::StateSnapshot& state) { rows = state.srqs; });
  host.Settle();
  ASSERT_EQ(rows.size(), 2u);
  const session::SrqRow& row = rows[rows[0].handle == one.handle ? 0 : 1];
  EXPECT_EQ(row.handle, one.handle);
  EXPECT_EQ(row.worker, WorkerOf(one.handle));
  EXPECT_EQ(row.size, 128u);
  EXPECT_EQ(row.max_sge, 3u);
  EXPECT_EQ(row.limit, 10u);
  EXPECT_EQ(row.held, 9u);
  EXPECT_EQ(row.qps, 1u);
  EXPECT_EQ(rows[rows[0].handle == one.handle ? 1 : 0].handle, other);
}

TEST_F(SharedQueues, Larger_KeepsWhatIsPostedAtItsIndicesAndSlots) {
  const rocegw_srq_reply before = Create(4, 3);
  auto* const control = reinterpret_cast<rocegw_srq_control*>(client.At(before.control));
  auto* const order = reinterpret_cast<uint32_t*>(client.At(before.order));
  uint8_t* const slots = client.At(before.slots);
  const uint32_t stride = rocegw_rq_stride(3);
  // Indices 7 to 10 are posted, in slots 2, 0, 3, 1.
  control->producer = 11;
  const uint32_t posted[] = {2, 0, 3, 1};
  for (uint32_t i = 0; i < 4; ++i) {
    order[(7 + i) & 3] = posted[i];
    reinterpret_cast<rocegw_recv_wqe*>(slots + size_t{i} * stride)->wr_id = 50 + i;
  }
  const rocegw_srq_reply after = Resize(before.handle, 9);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(after.handle, before.handle);
  EXPECT_EQ(after.entries, 16u);
  EXPECT_EQ(after.control.offset, before.control.offset);
  EXPECT_EQ(after.payload.offset, before.payload.offset);
  EXPECT_EQ(after.payload.length, before.payload.length);
  const verbs::SrqConfig& config = On(WorkerOf(before.handle)).srqs[before.handle];
  EXPECT_EQ(config.entries, 16u);
  const auto* const new_order = reinterpret_cast<const uint32_t*>(config.order);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(new_order[7 + i], posted[i]);
    const uint8_t* const slot = config.slots + size_t{i} * stride;
    EXPECT_EQ(reinterpret_cast<const rocegw_recv_wqe*>(slot)->wr_id, 50 + i);
  }
  // The client sees the same memory.
  reinterpret_cast<uint32_t*>(client.At(after.order))[12] = 9;
  EXPECT_EQ(new_order[12], 9u);
  EXPECT_EQ(Query(before.handle).max_wr, 16u);
  const rocegw_qp_reply qp = CreateQp(before.handle);
  EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.rq_entries, 4u) << "no more have payload areas";
}

TEST_F(SharedQueues, Smaller_KeepsItsMemory_AndItsLimitFits) {
  const rocegw_srq_reply before = Create(64);
  const rocegw_srq_reply after = Resize(before.handle, 10);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(after.entries, 64u);
  EXPECT_EQ(after.slots.offset, before.slots.offset);
  EXPECT_EQ(Query(before.handle).max_wr, 16u);
  EXPECT_EQ(Arm(before.handle, 17), EINVAL);
  Resize(before.handle, 8, ROCEGW_SRQ_MAX_WR | ROCEGW_SRQ_LIMIT, 8);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(Query(before.handle).limit, 8u);
  Resize(before.handle, 8, ROCEGW_SRQ_MAX_WR | ROCEGW_SRQ_LIMIT, 9);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(SharedQueues, ResizeRefused_EverythingIsAsBefore) {
  const rocegw_srq_reply srq = Create(4);
  for (const uint32_t size : {0u, 16385u, UINT32_MAX}) {
    Resize(srq.handle, size);
    EXPECT_EQ(client.error(), EINVAL);
  }
  const size_t worker = WorkerOf(srq.handle);
  host.workers[worker]->fail_next = ENOENT;
  const uint8_t* const slots = On(worker).srqs[srq.handle].slots;
  Resize(srq.handle, 100);
  EXPECT_EQ(client.error(), ENOENT);
  EXPECT_EQ(On(worker).srqs[srq.handle].slots, slots);
  EXPECT_EQ(Query(srq.handle).max_wr, 4u);
}

TEST_F(SharedQueues, WrongWishes_AreRefused) {
  Create(0);
  EXPECT_EQ(client.error(), EINVAL);
  Create(16385);
  EXPECT_EQ(client.error(), EINVAL);
  Create(10, 17);
  EXPECT_EQ(client.error(), EINVAL);
  Create(10, 1, 11);
  EXPECT_EQ(client.error(), EINVAL);
  CreateQp(5);
  EXPECT_EQ(client.error(), EINVAL);
  const uint32_t srq = Create().handle;
  CreateQp(srq, ROCEGW_QPT_XRC_SEND);
  EXPECT_EQ(client.error(), EINVAL);
  // Object of another context.
  const uint32_t other = client.OpenContext();
  pd = client.AllocPd(other);
  cq = client.CreateCq(other).handle;
  CreateQp(srq);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(SharedQueues, Destroy_WaitsForItsQueuePairs_AndKeepsThePdAlive) {
  const uint32_t srq = Create().handle;
  const uint32_t qp = CreateQp(srq).handle;
  client.Object(ROCEGW_MSG_DESTROY_SRQ, srq);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp);
  ASSERT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DESTROY_SRQ, srq);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DESTROY_SRQ, srq);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(SharedQueues, WorkerRefuses_NothingIsLeft) {
  for (auto& worker : host.workers) worker->fail_next = ENOMEM;
  Create();
  EXPECT_EQ(client.error(), ENOMEM);
  EXPECT_EQ(On(0).srqs.size() + On(1).srqs.size(), 0u);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(SharedQueues, SessionAndContextEnd_QueuePairsGoFirst) {
  CreateQp(Create().handle);
  CreateQp(Create().handle);
  client.Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(host.LinkedObjects(), 2u) << "a session on each worker";
  context = client.OpenContext();
  pd = client.AllocPd(context);
  cq = client.CreateCq(context).handle;
  CreateQp(Create().handle);
  client.Disconnect();
  host.Settle();
  EXPECT_EQ(host.LinkedObjects(), 0u);
}

TEST_F(SharedQueues, CreateQp_WorkerRefuses_NothingRemains) {
  const uint32_t srq = Create().handle;
  for (auto& worker : host.workers) worker->fail_next = EIO;
  CreateQp(srq);
  EXPECT_EQ(client.error(), EIO);
  EXPECT_EQ(host.server->services().pools.gateway().used(session::Resource::kQps), 0u);
  EXPECT_EQ(host.server->services().qpns.in_use(), 0u);
  client.Object(ROCEGW_MSG_DESTROY_SRQ, srq);
  EXPECT_EQ(client.error(), 0);
}

}  // namespace
}  // namespace rocegw::testing
