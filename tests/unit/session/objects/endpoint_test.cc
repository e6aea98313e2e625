// SPDX-License-Identifier: Apache-2.0
// States of endpoints, and endpoints and groups of a shared receive queue, through the attach
// protocol.
#include <cerrno>
#include <utility>
#include <vector>

#include "gateway/transport/endpoint/endpoint_group.h"
#include "gateway/transport/endpoint/endpoint_target.h"
#include "gateway/transport/queues/send_queue.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

using transport::EndpointState;

class Endpoints : public Objects {
 protected:
  void SetUp() override {
    Objects::SetUp();
    cq = Cq();
  }
  rocegw_create_qp Asked() {
    auto asked = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    asked.pd = pd;
    asked.send_cq = asked.recv_cq = cq;
    asked.type = ROCEGW_QPT_ENDPOINT;
    asked.service_mode = ROCEGW_SERVICE_UNORDERED;
    asked.max_send_wr = asked.max_recv_wr = 4;
    return asked;
  }
  rocegw_qp_reply Create(const rocegw_create_qp& asked) {
    return client.Call<rocegw_qp_reply>(asked);
  }
  uint32_t Srq() {
    auto asked = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    asked.pd = pd;
    asked.max_wr = 8;
    asked.max_sge = 1;
    return client.Call<rocegw_srq_reply>(asked).handle;
  }
  rocegw_group_reply Group(uint32_t srq) {
    auto asked = TestClient::Request<rocegw_create_group>(ROCEGW_MSG_CREATE_GROUP);
    asked.pd = pd;
    asked.srq = srq;
    return client.Call<rocegw_group_reply>(asked);
  }
  int Move(uint32_t qp, uint32_t state, uint32_t notify = 0) {
    auto asked = TestClient::Request<rocegw_modify_ep>(ROCEGW_MSG_MODIFY_EP);
    asked.qp = qp;
    asked.state = state;
    asked.notify = notify;
    client.Call<rocegw_object_reply>(asked);
    return client.error();
  }
  rocegw_query_ep_reply Query(uint32_t qp) {
    auto asked = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_EP);
    asked.handle = qp;
    return client.Call<rocegw_query_ep_reply>(asked);
  }
  FakeWorker::LinkedQp& Linked(const rocegw_qp_reply& qp) { return On(qp.worker).qps.at(qp.qpn); }

  uint32_t cq = 0;
};

TEST_F(Endpoints, Move_GoesToTheWorker) {
  const rocegw_qp_reply qp = Create(Asked());
  ASSERT_EQ(client.error(), 0);
  EXPECT_FALSE(Linked(qp).config.suspends_on_failure);
  EXPECT_EQ(Move(qp.handle, ROCEGW_EP_DRAINING, 1), 0);
  EXPECT_EQ(Linked(qp).endpoint.state, EndpointState::kDraining);
  EXPECT_TRUE(Linked(qp).notify);
  EXPECT_EQ(Move(qp.handle, ROCEGW_EP_SUSPENDED), 0);
  EXPECT_EQ(Linked(qp).endpoint.state, EndpointState::kSuspended);
  EXPECT_FALSE(Linked(qp).notify);
  EXPECT_EQ(Move(qp.handle, ROCEGW_EP_EXCEPTION), EINVAL) << "the worker refuses it";
  EXPECT_EQ(Move(qp.handle, ROCEGW_EP_ERROR + 1), EINVAL);
  EXPECT_EQ(Move(qp.handle + 1, ROCEGW_EP_READY), EINVAL);
  EXPECT_EQ(Move(client.CreateQp(pd, cq).handle, ROCEGW_EP_READY), EINVAL) << "no endpoint";
}

TEST_F(Endpoints, Query_TellsWhatTheWorkerKnows) {
  rocegw_create_qp asked = Asked();
  asked.on_failure = ROCEGW_EP_SUSPEND;
  const rocegw_qp_reply qp = Create(asked);
  ASSERT_EQ(client.error(), 0);
  EXPECT_TRUE(Linked(qp).config.suspends_on_failure);
  Linked(qp).endpoint = {EndpointState::kException, 3, 4, uint64_t{1} << 40};
  const rocegw_query_ep_reply known = Query(qp.handle);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(known.state, uint32_t{ROCEGW_EP_EXCEPTION});
  EXPECT_EQ(known.on_failure, uint32_t{ROCEGW_EP_SUSPEND});
  EXPECT_EQ(known.requests, 3u);
  EXPECT_EQ(known.messages, 4u);
  EXPECT_EQ(known.failures, uint64_t{1} << 40);
  Query(client.CreateQp(pd, cq).handle);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Endpoints, Rows_HaveStateAndMode) {
  rocegw_create_qp asked = Asked();
  asked.service_mode = ROCEGW_SERVICE_BY_INITIATOR;
  asked.on_failure = ROCEGW_EP_SUSPEND;
  const rocegw_qp_reply qp = Create(asked);
  ASSERT_EQ(client.error(), 0);
  Linked(qp).endpoint = {EndpointState::kDraining, 3, 4, 5};
  client.CreateQp(pd, cq);
  std::vector<session::QpRow> rows;
  host.server->Snapshot({.qps = true},
                        [&](session::StateSnapshot snapshot) { rows = std::move(snapshot.qps); });
  host.Settle();
  size_t endpoints = 0;
  for (const session::QpRow& row : rows) {
    ASSERT_EQ(row.endpoint.has_value(), row.qpn == qp.qpn);
    if (!row.endpoint.has_value()) continue;
    ++endpoints;
    EXPECT_EQ(row.endpoint->state, "draining");
    EXPECT_EQ(row.endpoint->mode, "by initiator");
    EXPECT_TRUE(row.endpoint->suspends_on_failure);
    EXPECT_EQ(row.endpoint->requests, 3u);
    EXPECT_EQ(row.endpoint->messages, 4u);
    EXPECT_EQ(row.endpoint->failures, 5u);
  }
  EXPECT_EQ(endpoints, 1u);
  EXPECT_EQ(rows.size(), 2u);
}

TEST_F(Endpoints, OnFailure_IsOfEndpoints) {
  rocegw_create_qp asked = Asked();
  asked.on_failure = ROCEGW_EP_SUSPEND + 1;
  Create(asked);
  EXPECT_EQ(client.error(), EINVAL);
  asked.on_failure = ROCEGW_EP_SUSPEND;
  asked.type = ROCEGW_QPT_RC;
  asked.service_mode = 0;
  Create(asked);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Endpoints, OfASharedReceiveQueue_AreOnItsWorker_WithoutAQueueOfTheirOwn) {
  rocegw_create_qp asked = Asked();
  asked.srq = Srq();
  ASSERT_EQ(client.error(), 0);
  const size_t worker = On(0).srqs.contains(asked.srq) ? 0 : 1;
  for (int i = 0; i < 3; ++i) {
    const rocegw_qp_reply qp = Create(asked);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.worker, worker);
    EXPECT_EQ(qp.rq_entries, 0u);
    EXPECT_EQ(Linked(qp).config.srq, asked.srq);
  }
  client.Object(ROCEGW_MSG_DESTROY_SRQ, asked.srq);
  EXPECT_EQ(client.error(), EBUSY);
}

// Queues lie on workers in turn, so that one of these groups would be elsewhere without its queue.
TEST_F(Endpoints, GroupOfASharedReceiveQueue_IsOnItsWorker) {
  for (int i = 0; i < 4; ++i) {
    rocegw_create_qp asked = Asked();
    asked.srq = Srq();
    if (i == 1) client.CreateQp(pd, cq);
    const rocegw_group_reply group = Group(asked.srq);
    ASSERT_EQ(client.error(), 0);
    asked.group = group.handle;
    const rocegw_qp_reply member = Create(asked);
    ASSERT_EQ(client.error(), 0);
    EXPECT_TRUE(On(member.worker).groups.contains(group.number));
    EXPECT_TRUE(On(member.worker).srqs.contains(asked.srq));
  }
}

TEST_F(Endpoints, MemberWithASharedReceiveQueueElsewhere_IsRefused) {
  const rocegw_group_reply group = Group(0);
  ASSERT_EQ(client.error(), 0);
  int refused = 0;
  for (int i = 0; i < 2; ++i) {
    rocegw_create_qp asked = Asked();
    asked.srq = Srq();
    asked.group = group.handle;
    Create(asked);
    refused += client.error() == EINVAL ? 1 : 0;
  }
  EXPECT_EQ(refused, 1) << "two workers have one queue each";
}

// An endpoint keeps heap for the receives that it had at a time.
TEST_F(Endpoints, ReceivesOfASharedQueue_AreChargedToEachEndpoint) {
  const auto heap = [&] {
    return host.server->services().pools.gateway().used(session::Resource::kHeapBytes);
  };
  rocegw_create_qp asked = Asked();
  asked.max_recv_wr = 0;
  asked.srq = Srq();
  const uint64_t before = heap();
  const rocegw_qp_reply first = Create(asked);
  ASSERT_EQ(client.error(), 0);
  const uint64_t of_one = heap() - before;
  EXPECT_GE(of_one, transport::EndpointTarget::HeapOfSharedReceives(8, 1) +
                        transport::SendQueue::HeapBytes(4, 1));
  const rocegw_qp_reply second = Create(asked);
  EXPECT_EQ(heap() - before, 2 * of_one);

  auto resize = TestClient::Request<rocegw_modify_srq>(ROCEGW_MSG_MODIFY_SRQ);
  resize.srq = asked.srq;
  resize.mask = ROCEGW_SRQ_MAX_WR;
  resize.max_wr = 64;
  client.Call<rocegw_srq_reply>(resize);
  ASSERT_EQ(client.error(), 0);
  EXPECT_GE(heap() - before, 2 * transport::EndpointTarget::HeapOfSharedReceives(64, 1));

  for (const uint32_t qp : {first.handle, second.handle}) client.Object(ROCEGW_MSG_DESTROY_QP, qp);
  client.Object(ROCEGW_MSG_DESTROY_SRQ, asked.srq);
  EXPECT_EQ(client.error(), 0);
  EXPECT_LE(heap(), before);
}

TEST_F(Endpoints, GroupOfAQueueThatThereIsNot_IsRefused) {
  Group(4711);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Endpoints, GroupWithTheMostMembers_TakesNoOther) {
  const rocegw_group_reply group = Group(0);
  ASSERT_EQ(client.error(), 0);
  rocegw_create_qp asked = Asked();
  asked.group = group.handle;
  for (uint32_t i = 0; i < transport::EndpointGroup::kMostMembers; ++i) {
    Create(asked);
    ASSERT_EQ(client.error(), 0) << i;
  }
  Create(asked);
  EXPECT_EQ(client.error(), ENOMEM);
  EXPECT_TRUE(host.Told("members of a group, the most that one program may have"));
  asked.group = 0;
  Create(asked);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Endpoints, Group_IsChargedForWhatMembersLeave) {
  const tenant::QuotaNode& used = host.server->services().pools.gateway();
  const uint64_t before = used.used(session::Resource::kHeapBytes);
  const rocegw_group_reply group = Group(0);
  EXPECT_GE(used.used(session::Resource::kHeapBytes),
            before + transport::OrphanMessages::kMostHeapBytes);
  client.Object(ROCEGW_MSG_DESTROY_GROUP, group.handle);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(used.used(session::Resource::kHeapBytes), before);
}

}  // namespace
}  // namespace rocegw::testing
