// SPDX-License-Identifier: Apache-2.0
// Queue pairs through the attach protocol: made, changed, asked for, destroyed.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "gateway/port/steering.h"
#include "gateway/verbs/types.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

using verbs::QpState;

TEST_F(Objects, CreateQp_LayoutIsWhatTheWorkerSees) {
  const uint32_t cq = Cq();
  auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  create.pd = pd;
  create.send_cq = create.recv_cq = cq;
  create.type = ROCEGW_QPT_RC;
  create.max_send_wr = 100;
  create.max_recv_wr = 0;
  create.max_send_sge = 3;
  create.max_recv_sge = 2;
  create.max_inline = 220;
  create.cookie = 99;
  const auto qp = client.Call<rocegw_qp_reply>(create);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(qp.sq_entries, 128u);
  EXPECT_EQ(qp.rq_entries, 1u);
  EXPECT_EQ(qp.sq_payload_stride, 512u);
  EXPECT_EQ(qp.rq_payload_stride, 1024u);
  EXPECT_EQ(qp.sq.length, 128 * rocegw_sq_stride(3));
  EXPECT_EQ(qp.sq_payload.length, 128u * 512);
  EXPECT_EQ(qp.rq.length, rocegw_rq_stride(2));
  EXPECT_EQ(port::SteeringTable(2).WorkerOf(Qpn{qp.qpn}), qp.worker);

  const verbs::QpConfig& config = On(qp.worker).qps[qp.qpn].config;
  EXPECT_EQ(config.cookie, 99u);
  EXPECT_EQ(config.sq_stride, rocegw_sq_stride(3));
  EXPECT_EQ(config.rq_stride, rocegw_rq_stride(2));
  EXPECT_EQ(config.port_mtu, 3);
  ASSERT_NE(config.gids, nullptr);
  EXPECT_EQ(config.gids->entries[0], wire::Gid::FromV4(0xC0000201));
  std::memset(client.At(qp.sq), 0x5A, qp.sq.length);
  EXPECT_EQ(config.sq[qp.sq.length - 1], 0x5A);
  reinterpret_cast<rocegw_qp_control*>(client.At(qp.control))->sq_producer = 17;
  EXPECT_EQ(config.control->sq_producer, 17u);
  EXPECT_TRUE(client.chunks[qp.status.chunk].read_only);
  EXPECT_TRUE(client.chunks[qp.rq_payload.chunk].read_only);
  config.status->sq_released = 4;
  EXPECT_EQ(reinterpret_cast<rocegw_qp_status*>(client.At(qp.status))->sq_released, 4u);
  auto* const page = reinterpret_cast<rocegw_doorbell_page*>(client.At(qp.doorbell));
  page->leaf[qp.doorbell_bit / 64] = uint64_t{1} << (qp.doorbell_bit % 64);
  EXPECT_EQ(On(qp.worker).pages[config.doorbell_page]->leaf[config.doorbell_bit / 64],
            uint64_t{1} << (config.doorbell_bit % 64));
}

TEST_F(Objects, CreateQp_InlineData_AsMuchAsAListWouldTake) {
  const uint32_t cq = Cq();
  const struct {
    uint32_t depth, sges, asked, granted;
  } cases[] = {{100, 1, 0, 16},   {100, 4, 0, 64}, {100, 4, 65, 65},
               {256, 16, 0, 256}, {512, 4, 0, 0},  {512, 4, 100, 100}};
  for (const auto& c : cases) {
    auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    create.pd = pd;
    create.send_cq = create.recv_cq = cq;
    create.type = ROCEGW_QPT_RC;
    create.max_send_wr = c.depth;
    create.max_recv_wr = create.max_recv_sge = 1;
    create.max_send_sge = c.sges;
    create.max_inline = c.asked;
    const auto qp = client.Call<rocegw_qp_reply>(create);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.max_inline, c.granted) << c.depth << " " << c.sges << " " << c.asked;
    EXPECT_LE(qp.max_inline, qp.sq_payload_stride);
    EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.max_inline, c.granted);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
}

TEST_F(Objects, CreateQp_PayloadStrides_AtLeast256OrNone) {
  const uint32_t cq = Cq();
  const struct {
    uint32_t depth, stride;
  } cases[] = {{1, 1024}, {64, 1024}, {128, 512}, {256, 256}, {512, 0}, {16384, 0}};
  for (const auto& c : cases) {
    const auto qp = client.CreateQp(pd, cq, ROCEGW_QPT_RC, c.depth);
    ASSERT_EQ(client.error(), 0);
    EXPECT_EQ(qp.rq_payload_stride, c.stride) << c.depth;
    EXPECT_EQ(qp.sq_payload_stride, c.stride) << c.depth;
    EXPECT_EQ(qp.rq_payload.length, c.stride * c.depth);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
}

TEST_F(Objects, CreateQp_RefusesWhatIsBeyondTheDevice) {
  const uint32_t cq = Cq();
  const uint32_t other_context = client.OpenContext();
  const uint32_t other_cq = client.CreateCq(other_context).handle;
  auto good = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  good.pd = pd;
  good.send_cq = good.recv_cq = cq;
  good.type = ROCEGW_QPT_UD;
  good.max_send_wr = good.max_recv_wr = 1;
  for (int which = 0; which < 10; ++which) {
    auto bad = good;
    switch (which) {
      case 0:
        bad.pd = 99;
        break;
      case 1:
        bad.send_cq = 99;
        break;
      case 2:
        bad.recv_cq = 0;
        break;
      case 3:
        bad.type = 1;
        break;
      case 4:
        bad.max_send_wr = 16385;
        break;
      case 5:
        bad.max_recv_wr = 0xFFFFFFFF;
        break;
      case 6:
        bad.max_send_sge = 17;
        break;
      case 7:
        bad.max_recv_sge = 17;
        break;
      case 8:
        bad.max_inline = 1025;
        break;
      case 9:
        bad.send_cq = other_cq;
        break;
    }
    client.Call<rocegw_qp_reply>(bad);
    EXPECT_EQ(client.error(), EINVAL) << which;
  }
  client.Call<rocegw_qp_reply>(good);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, CreateQp_ManyAreSpreadAndHaveTheirOwnBits) {
  const uint32_t cq = Cq();
  std::set<uint32_t> numbers;
  std::array<size_t, 2> on_worker{};
  for (int i = 0; i < 200; ++i) {
    const auto qp = client.CreateQp(pd, cq, ROCEGW_QPT_RC, 1);
    ASSERT_EQ(client.error(), 0);
    numbers.insert(qp.qpn);
    ++on_worker[qp.worker];
  }
  EXPECT_EQ(numbers.size(), 200u);
  EXPECT_EQ(on_worker[0], 100u);
  EXPECT_EQ(on_worker[1], 100u);
}

TEST_F(Objects, CreateQp_MoreThanAPageOfBits_SecondPage) {
  SessionHost single(1);
  TestClient one(single);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  const uint32_t cq = one.CreateCq(c).handle;
  for (uint32_t i = 0; i < ROCEGW_DOORBELL_BITS + 1; ++i) {
    one.CreateQp(p, cq, ROCEGW_QPT_RC, 1);
    ASSERT_EQ(one.error(), 0) << i;
  }
  EXPECT_EQ(single.workers[0]->sessions.begin()->second.pages.size(), 2u);
  EXPECT_EQ(single.BrokenRules(), std::vector<std::string>());
}

TEST_F(Objects, CreateQp_AllOfItsOwn_WaitsForNoWorker) {
  const uint32_t cq = Cq();
  for (auto& worker : host.workers) worker->fail_next = EIO;
  client.CreateQp(pd, cq);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, Destroy_InUse_IsBusyUntilTheUsersAreGone) {
  const uint32_t cq = Cq();
  const auto qp = client.CreateQp(pd, cq);
  const auto mr = client.RegMr(pd, 4096, 64);
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), EBUSY);
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(Objects, DestroyedMemory_IsUsedAgain) {
  const uint32_t cq = Cq();
  client.CreateQp(pd, cq);
  const size_t chunks = client.chunks.size();
  for (int i = 0; i < 1000; ++i) {
    const auto qp = client.CreateQp(pd, cq);
    ASSERT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  }
  EXPECT_EQ(client.chunks.size(), chunks);
}

TEST_F(Objects, ModifyQp_ToRtr_TranslatesThePath) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), 0);
  const verbs::QpAttributes& seen = On(qp.worker).qps[qp.qpn].attributes;
  EXPECT_EQ(seen.state, QpState::kRtr);
  EXPECT_EQ(seen.dest_qpn, Qpn{0x123456});
  EXPECT_EQ(seen.path.source, wire::Gid::FromV4(0xC0000201));
  EXPECT_EQ(seen.path.destination, wire::Gid::FromV4(0xC0000209));
  EXPECT_EQ(seen.path.hop_limit, 64);
  EXPECT_EQ(seen.path.source_port & 0xC03F, 0xC000 | port::BucketOf(Qpn{0x123456}));
  EXPECT_EQ(reinterpret_cast<rocegw_qp_status*>(client.At(qp.status))->state, 2u);
}

// A new path leads to the queue pair's current peer, whatever was refused before.

TEST_F(Objects, ModifyQp_RefusedPeer_IsForgotten) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  rocegw_qp_attr attr = ToRtr();
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, attr), 0);
  attr.qp_state = static_cast<uint32_t>(QpState::kRts);
  ASSERT_EQ(client.Modify(qp.handle,
                          verbs::kAttrState | verbs::kAttrTimeout | verbs::kAttrRetryCnt |
                              verbs::kAttrRnrRetry | verbs::kAttrSqPsn | verbs::kAttrMaxQpRdAtomic,
                          attr),
            0);
  attr.dest_qpn = 0xABCDEF;
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrDestQpn, attr), EINVAL);
  attr.qp_state = static_cast<uint32_t>(QpState::kSqd);
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrState, attr), 0);
  ASSERT_EQ(client.Modify(qp.handle, verbs::kAttrAv, attr), 0);
  const verbs::QpAttributes& seen = On(qp.worker).qps[qp.qpn].attributes;
  EXPECT_EQ(seen.path.source_port & 0x3F, port::BucketOf(Qpn{0x123456}));
}

TEST_F(Objects, ModifyQp_RefusesWrongMaskMtuAndIndex) {
  const auto qp = client.CreateQp(pd, Cq());
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), EINVAL) << "from RESET";
  ASSERT_EQ(ToInit(qp.handle), 0);
  auto attr = ToRtr();
  attr.path_mtu = 4;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "beyond the active MTU";
  attr = ToRtr();
  attr.av.sgid_index = 1;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "index without address";
  attr.av.sgid_index = 2;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "IPv6 source, IPv4 destination";
  attr.av.sgid_index = 200;
  EXPECT_EQ(client.Modify(qp.handle, kRtrMask, attr), EINVAL) << "no such index";
  EXPECT_EQ(client.Modify(999, kRtrMask, ToRtr()), EINVAL) << "no such QP";
}

TEST_F(Objects, QueryQp_TellsWhatWasSet) {
  const auto qp = client.CreateQp(pd, Cq());
  ASSERT_EQ(ToInit(qp.handle), 0);
  ASSERT_EQ(client.Modify(qp.handle, kRtrMask, ToRtr()), 0);
  auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
  query.handle = qp.handle;
  const auto reply = client.Call<rocegw_query_qp_reply>(query);
  ASSERT_EQ(client.error(), 0);
  EXPECT_EQ(reply.attr.qp_state, 2u);
  EXPECT_EQ(reply.attr.dest_qpn, 0x123456u);
  EXPECT_EQ(reply.attr.rq_psn, 5u);
  EXPECT_EQ(reply.attr.av.dgid[15], 9);
  EXPECT_EQ(reply.max_send_wr, 16u);
}

}  // namespace
}  // namespace rocegw::testing
