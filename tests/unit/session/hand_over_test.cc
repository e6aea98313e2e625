// SPDX-License-Identifier: Apache-2.0
// Hand-over of sessions to another session server, as between two processes: the successor has
// copies of the descriptors and reads the state. The program keeps its connection and its memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/hand_over/session_versions.h"
#include "tests/support/session/session_host.h"
#include "tests/unit/session/hand_over_fixture.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

TEST_F(SessionHandOver, ObjectsAreLinkedAgain_AndTheProgramGoesOn) {
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const uint32_t channel = client.CreateChannel(context);
  const rocegw_cq_reply cq = client.CreateCq(context, 64, channel);
  const rocegw_mr_reply mr = client.RegMr(pd, 0x10000, 4096);
  const rocegw_qp_reply qp = client.CreateQp(pd, cq.handle);
  ASSERT_EQ(client.error(), 0);
  const rocegw_qp_reply gone = client.CreateQp(pd, cq.handle);
  client.Object(ROCEGW_MSG_DESTROY_QP, gone.handle);
  client.At(qp.sq)[0] = 77;
  const size_t linked = old_.LinkedObjects();
  const uint64_t bytes = old_.server->services()
                             .pools.FindPool(session::kDefaultPool)
                             ->used(session::Resource::kSegmentBytes);

  ASSERT_EQ(HandOver(), "");

  EXPECT_EQ(fresh_->LinkedObjects(), linked);
  const tenant::Pool& pool = *fresh_->server->services().pools.FindPool(session::kDefaultPool);
  EXPECT_EQ(pool.used(session::Resource::kQps), 1u);
  EXPECT_EQ(pool.used(session::Resource::kMrs), 1u);
  EXPECT_EQ(pool.used(session::Resource::kSessions), 1u);
  EXPECT_EQ(pool.used(session::Resource::kSegmentBytes), bytes);
  const session::ClientSession* const session = fresh_->server->attach().Find(SessionId{1});
  ASSERT_NE(session, nullptr);
  const session::Qp* const kept = session->objects().qps.Find(qp.handle);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->qpn.value, qp.qpn);
  EXPECT_EQ(kept->sq.address[0], 77);
  EXPECT_EQ(session->objects().mrs.Find(mr.handle)->key.value, mr.lkey);
  EXPECT_EQ(session->objects().cqs.Find(cq.handle)->users, 2u);

  // The successor refuses and assigns as the old gateway would.
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle);
  EXPECT_EQ(client.error(), EBUSY);
  const rocegw_qp_reply next = client.CreateQp(pd, cq.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_NE(next.qpn, qp.qpn);
  EXPECT_NE(next.qpn, gone.qpn);
  EXPECT_NE(next.handle, gone.handle);
  EXPECT_NE(next.sq.offset, qp.sq.offset);
  for (const uint32_t handle : {qp.handle, next.handle}) {
    client.Object(ROCEGW_MSG_DESTROY_QP, handle);
    EXPECT_EQ(client.error(), 0);
  }
  client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle);
  EXPECT_EQ(client.error(), 0);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
  EXPECT_EQ(pool.used(session::Resource::kQps), 0u);
  EXPECT_EQ(pool.used(session::Resource::kCqs), 0u);
}

TEST_F(SessionHandOver, CountsOfPoolsGoOn) {
  const auto pool_of = [](SessionHost& host) {
    return host.server->services().pools.FindPool(session::kDefaultPool);
  };
  tenant::PoolCounts counts;
  for (size_t i = 0; i < tenant::kLimits; ++i) counts.refused[i] = 100 + i;
  counts.peers_refused = 1;
  counts.identities_refused = 2;
  counts.bounds_refused = 3;
  counts.attaches = {4, 5, 6};
  counts.sent_bytes = 7;
  counts.sent_packets = 8;
  for (int i = 0; i < 9; ++i) counts.set_up.Add(Microseconds(i));
  for (int i = 0; i < 10; ++i) counts.operations.Add(Seconds(1));
  pool_of(old_)->AddCounts(counts);
  ASSERT_EQ(HandOver(), "");
  pool_of(*fresh_)->AddCounts(counts);
  const tenant::PoolCounts all = pool_of(*fresh_)->counts();
  for (size_t i = 0; i < tenant::kLimits; ++i)
    EXPECT_EQ(all.refused[i], 2 * (100 + i)) << tenant::LimitName(i);
  EXPECT_EQ(all.peers_refused, 2u);
  EXPECT_EQ(all.identities_refused, 4u);
  EXPECT_EQ(all.bounds_refused, 6u);
  EXPECT_EQ(all.attaches, (tenant::AttachCounts{8, 10, 12}));
  EXPECT_EQ(all.sent_bytes, 14u);
  EXPECT_EQ(all.sent_packets, 16u);
  EXPECT_EQ(all.set_up.count(), 18u);
  EXPECT_EQ(all.set_up.counts()[0], 4u);
  EXPECT_EQ(all.operations.count(), 20u);
  EXPECT_EQ(all.operations.sum_ns(), Seconds(20).ns);
  // An older gateway begins with none.
  versions_.Set(hand_over::StateKind::kSessions, 3);
  ASSERT_EQ(HandOver(), "");
  EXPECT_EQ(pool_of(*fresh_)->counts().sent_bytes, 0u);
}

TEST_F(SessionHandOver, SeveralSessions_AndAnEndMeanwhile) {
  const auto first_attached = AttachToOld();
  TestClient& first = *first_attached;
  ASSERT_TRUE(first.Hello());
  first.OpenContext();
  auto second = AttachToOld();
  ASSERT_TRUE(second->Hello());
  const uint32_t context = second->OpenContext();
  ASSERT_NE(context, 0u);
  ASSERT_EQ(HandOver(), "");
  EXPECT_EQ(fresh_->server->session_count(), 2u);
  second.reset();
  fresh_->Settle();
  EXPECT_EQ(fresh_->server->session_count(), 1u);
  EXPECT_NE(first.OpenContext(), 0u);
  // Numbers of sessions are not given again.
  TestClient third([this] { fresh_->Settle(); }, ConnectTo(*fresh_));
  ASSERT_TRUE(third.Hello());
  EXPECT_NE(fresh_->server->attach().Find(SessionId{3}), nullptr);
}

TEST_F(SessionHandOver, WhatIsNotCovered_IsNamed_AndNotWritten) {
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  ASSERT_NE(context, 0u);
  EXPECT_EQ(old_.server->attach().NotHandedOver(), "");
  old_.server->attach().Find(SessionId{1})->memory().ExpectDevices();
  EXPECT_NE(old_.server->attach().NotHandedOver().find("has loaded CUDA"), std::string::npos);
  EXPECT_EQ(HandOver(), "session is not at rest");
}

// Program in an XRC domain.
struct XrcProgram {
  XrcProgram(TestClient& the_client, int file) : client(the_client) {
    EXPECT_TRUE(client.Hello());
    const uint32_t context = client.OpenContext();
    pd = client.AllocPd(context);
    cq = client.CreateCq(context, 64, 0).handle;
    auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
    request.context = context;
    request.flags = ROCEGW_XRCD_CREATE;
    request.named = file >= 0 ? 1 : 0;
    xrcd = client.Call<rocegw_object_reply>(request, file).handle;
    EXPECT_EQ(client.error(), 0);
  }
  rocegw_srq_reply CreateSrq() const {
    auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    request.pd = pd;
    request.max_wr = 8;
    request.max_sge = 1;
    request.xrcd = xrcd;
    request.cq = cq;
    return client.Call<rocegw_srq_reply>(request);
  }
  rocegw_qp_reply CreateTarget() const {
    auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    request.type = ROCEGW_QPT_XRC_RECV;
    request.xrcd = xrcd;
    return client.Call<rocegw_qp_reply>(request);
  }
  rocegw_qp_reply OpenTarget(uint32_t qpn) const {
    auto request = TestClient::Request<rocegw_open_qp>(ROCEGW_MSG_OPEN_QP);
    request.xrcd = xrcd;
    request.qpn = qpn;
    return client.Call<rocegw_qp_reply>(request);
  }
  int Do(uint32_t type, uint32_t handle) const {
    client.Object(type, handle);
    return client.error();
  }

  TestClient& client;
  uint32_t pd = 0;
  uint32_t cq = 0;
  uint32_t xrcd = 0;
};

TEST_F(SessionHandOver, XrcDomains_AreSharedAsBefore) {
  const UniqueFd file(::memfd_create("xrc", MFD_CLOEXEC));
  const UniqueFd other_file(::memfd_create("xrc", MFD_CLOEXEC));
  const auto first = AttachToOld();
  const auto second = AttachToOld();
  const auto third = AttachToOld();
  const XrcProgram one(*first, file.get());
  const XrcProgram two(*second, file.get());
  const XrcProgram lone(*third, -1);
  const rocegw_srq_reply srq = one.CreateSrq();
  const rocegw_srq_reply others = two.CreateSrq();
  const rocegw_qp_reply target = one.CreateTarget();
  const rocegw_qp_reply opened = two.OpenTarget(target.qpn);
  const rocegw_qp_reply send = two.client.CreateQp(two.pd, two.cq, ROCEGW_QPT_XRC_SEND);
  ASSERT_EQ(two.client.error(), 0);
  const rocegw_srq_reply of_lone = lone.CreateSrq();
  ASSERT_EQ(lone.client.error(), 0);
  hand_over::StateVersions older;
  older.Set(hand_over::StateKind::kSession, 2);
  EXPECT_NE(old_.server->attach().NotHandedOver(older).find("XRC domain"), std::string::npos);
  EXPECT_EQ(old_.server->attach().NotHandedOver(), "");
  const size_t linked = old_.LinkedObjects();
  // The domain goes over with a session ahead, and its second session at last.
  looks_ = true;
  between_looks_ = [&] { two.client.AllocPd(1); };
  ASSERT_EQ(HandOver(), "");

  EXPECT_EQ(fresh_->LinkedObjects(), linked);
  const tenant::Pool& pool = *fresh_->server->services().pools.FindPool(session::kDefaultPool);
  EXPECT_EQ(pool.used(session::Resource::kQps), 3u);
  EXPECT_EQ(pool.used(session::Resource::kSrqs), 3u);
  const session::XrcDomains& domains = fresh_->server->services().xrc;
  const session::XrcDomain* const domain =
      fresh_->server->attach().Find(SessionId{1})->objects().xrcds.Find(one.xrcd)->domain;
  EXPECT_EQ(domains.FindTarget(domain->id, Qpn{target.qpn})->openers.size(), 2u);
  // A program that shows the same file finds the domain, and its queue pair.
  TestClient late([this] { fresh_->Settle(); }, ConnectTo(*fresh_));
  const XrcProgram later(late, file.get());
  const rocegw_qp_reply again = later.OpenTarget(target.qpn);
  EXPECT_EQ(late.error(), 0);
  const rocegw_srq_reply next = later.CreateSrq();
  for (const rocegw_srq_reply& known : {srq, others, of_lone}) EXPECT_NE(next.number, known.number);
  TestClient stranger([this] { fresh_->Settle(); }, ConnectTo(*fresh_));
  const XrcProgram foreign(stranger, other_file.get());
  foreign.OpenTarget(target.qpn);
  EXPECT_EQ(stranger.error(), EINVAL);

  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, one.xrcd), EBUSY);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_QP, target.handle), 0);
  EXPECT_NE(domains.FindTarget(domain->id, Qpn{target.qpn}), nullptr);
  EXPECT_EQ(two.Do(ROCEGW_MSG_DESTROY_QP, opened.handle), 0);
  EXPECT_EQ(later.Do(ROCEGW_MSG_DESTROY_QP, again.handle), 0);
  EXPECT_EQ(domains.FindTarget(domain->id, Qpn{target.qpn}), nullptr);
  EXPECT_EQ(two.Do(ROCEGW_MSG_DESTROY_QP, send.handle), 0);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_SRQ, srq.handle), 0);
  EXPECT_EQ(two.Do(ROCEGW_MSG_DESTROY_SRQ, others.handle), 0);
  EXPECT_EQ(later.Do(ROCEGW_MSG_DESTROY_SRQ, next.handle), 0);
  for (const XrcProgram* const program : {&one, &two, &later})
    EXPECT_EQ(program->Do(ROCEGW_MSG_CLOSE_XRCD, program->xrcd), 0);
  EXPECT_EQ(lone.Do(ROCEGW_MSG_DESTROY_SRQ, of_lone.handle), 0);
  EXPECT_EQ(lone.Do(ROCEGW_MSG_CLOSE_XRCD, lone.xrcd), 0);
  EXPECT_EQ(pool.used(session::Resource::kQps), 0u);
  EXPECT_EQ(pool.used(session::Resource::kSrqs), 0u);
  EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
}

TEST_F(SessionHandOver, AFileOfAnXrcDomainThatIsMissing_IsRefused) {
  const UniqueFd file(::memfd_create("xrc", MFD_CLOEXEC));
  const auto attached = AttachToOld();
  const XrcProgram program(*attached, file.get());
  drop_descriptor_ = FdKind::kXrcFile;
  EXPECT_EQ(HandOver(), "descriptor of a session is missing");
}

TEST_F(SessionHandOver, EndpointsTheirGroupsAndPeers_GoOver) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead);
    looks_ = ahead;
    fresh_.reset();
    const auto attached = AttachToOld();
    TestClient& client = *attached;
    ASSERT_TRUE(client.Hello());
    const uint32_t context = client.OpenContext();
    const uint32_t pd = client.AllocPd(context);
    const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
    auto make = TestClient::Request<rocegw_create_group>(ROCEGW_MSG_CREATE_GROUP);
    make.pd = pd;
    make.key = 99;
    make.dispatch = ROCEGW_DISPATCH_DEPTH;
    const auto group = client.Call<rocegw_group_reply>(make);
    ASSERT_EQ(client.error(), 0);
    auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    create.type = ROCEGW_QPT_ENDPOINT;
    create.service_mode = ROCEGW_SERVICE_UNORDERED;
    create.pd = pd;
    create.send_cq = create.recv_cq = cq.handle;
    create.group = group.handle;
    create.max_send_wr = create.max_recv_wr = 4;
    create.max_send_sge = create.max_recv_sge = 1;
    const auto member = client.Call<rocegw_qp_reply>(create);
    ASSERT_EQ(client.error(), 0);
    create.group = 0;
    const auto single = client.Call<rocegw_qp_reply>(create);
    ASSERT_EQ(client.error(), 0);
    // Discovery of a peer needs a network, so the peer is put where the command puts it.
    session::ClientSession* found = nullptr;
    old_.server->attach().ForEach([&](session::ClientSession& one) { found = &one; });
    session::ClientSession& before = *found;
    auto peer = std::make_unique<session::EndpointPeer>();
    peer->context = context;
    peer->pd = pd;
    peer->linked.endpoint = Qpn{0x123456};
    peer->linked.key = 7;
    peer->linked.path.destination = wire::Gid::FromV4(0x0A000002);
    peer->linked.target = {.peer = wire::Gid::FromV4(0x0A000002),
                           .acceptor = Qpn{77},
                           .peer_worker = 1,
                           .instance = 5,
                           .features = 3,
                           .window = 65536};
    ++before.objects().pds.Find(pd)->users;
    ASSERT_EQ(before.quota().Take(session::Resource::kAhs), 0);
    const uint32_t handle = before.objects().peers.Add(std::move(peer));
    ASSERT_EQ(HandOver(), "");

    const tenant::Pool& pool = *fresh_->server->services().pools.FindPool(session::kDefaultPool);
    EXPECT_EQ(pool.used(session::Resource::kQps), 3u);
    EXPECT_EQ(pool.used(session::Resource::kAhs), 1u);
    size_t groups = 0;
    for (const auto& worker : fresh_->workers) {
      const FakeWorker::Session& session = worker->sessions.begin()->second;
      groups += session.groups.size();
      const transport::Peer& linked = session.peers.at(handle);
      EXPECT_EQ(linked.endpoint, Qpn{0x123456});
      EXPECT_EQ(linked.key, 7u);
      EXPECT_EQ(linked.target.window, 65536u);
      EXPECT_EQ(linked.path.destination, wire::Gid::FromV4(0x0A000002));
    }
    EXPECT_EQ(groups, 1u);
    client.Object(ROCEGW_MSG_DESTROY_GROUP, group.handle);
    EXPECT_EQ(client.error(), EBUSY);
    for (const uint32_t qp : {member.handle, single.handle}) {
      client.Object(ROCEGW_MSG_DESTROY_QP, qp);
      EXPECT_EQ(client.error(), 0);
    }
    client.Object(ROCEGW_MSG_DESTROY_GROUP, group.handle);
    EXPECT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DESTROY_PEER, handle);
    EXPECT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
    EXPECT_EQ(client.error(), 0);
    EXPECT_EQ(pool.used(session::Resource::kQps), 0u);
    EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
    old_.server->attach().EndAll("the next round has its own");
    old_.server->attach().SetWatching(true);
    old_.Settle();
  }
}

// An older gateway would take them for plain endpoints.
TEST_F(SessionHandOver, StatesAndSharedReceivesOfEndpoints_GoOver_AndNotToAnOlderVersion) {
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  hand_over::StateVersions older;
  older.Set(hand_over::StateKind::kSession, 3);
  const session::AttachServer& attach = old_.server->attach();
  const auto held_back = [&] { return !attach.NotHandedOver(older).empty(); };
  const uint32_t context = client.OpenContext();
  auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  create.type = ROCEGW_QPT_ENDPOINT;
  create.service_mode = ROCEGW_SERVICE_UNORDERED;
  create.pd = client.AllocPd(context);
  create.send_cq = create.recv_cq = client.CreateCq(context, 64, 0).handle;
  create.max_send_wr = create.max_recv_wr = 4;
  const auto plain = client.Call<rocegw_qp_reply>(create);
  EXPECT_FALSE(held_back());
  auto move = TestClient::Request<rocegw_modify_ep>(ROCEGW_MSG_MODIFY_EP);
  move.qp = plain.handle;
  move.state = ROCEGW_EP_DRAINING;
  client.Call<rocegw_object_reply>(move);
  EXPECT_TRUE(held_back()) << "drains";
  move.state = ROCEGW_EP_SUSPENDED;
  client.Call<rocegw_object_reply>(move);
  EXPECT_FALSE(held_back()) << "older gateways know SQD";
  move.state = ROCEGW_EP_DRAINING;
  client.Call<rocegw_object_reply>(move);
  EXPECT_TRUE(held_back());
  rocegw_qp_attr reset{};
  EXPECT_EQ(client.Modify(plain.handle, verbs::kAttrState, reset), 0);
  EXPECT_FALSE(held_back()) << "RESET ends DRAINING";
  create.on_failure = ROCEGW_EP_SUSPEND;
  const auto suspends = client.Call<rocegw_qp_reply>(create);
  EXPECT_TRUE(held_back());
  client.Object(ROCEGW_MSG_DESTROY_QP, suspends.handle);
  EXPECT_FALSE(held_back());
  auto make = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
  make.pd = create.pd;
  make.max_wr = 8;
  make.max_sge = 1;
  create.srq = client.Call<rocegw_srq_reply>(make).handle;
  const auto shares = client.Call<rocegw_qp_reply>(create);
  ASSERT_EQ(client.error(), 0);
  EXPECT_TRUE(held_back());
  EXPECT_EQ(attach.NotHandedOver(), "");
  ASSERT_EQ(HandOver(), "");

  const FakeWorker::Session& there = fresh_->workers[shares.worker]->sessions.begin()->second;
  const verbs::QpConfig& config = there.qps.at(shares.qpn).config;
  EXPECT_EQ(config.srq, create.srq);
  EXPECT_TRUE(config.suspends_on_failure);
  client.Object(ROCEGW_MSG_DESTROY_SRQ, create.srq);
  EXPECT_EQ(client.error(), EBUSY);
  for (const uint32_t qp : {plain.handle, shares.handle}) {
    client.Object(ROCEGW_MSG_DESTROY_QP, qp);
    EXPECT_EQ(client.error(), 0);
  }
  client.Object(ROCEGW_MSG_DESTROY_SRQ, create.srq);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
}

TEST_F(SessionHandOver, SessionThatRests_IsHandedOverAhead) {
  looks_ = true;
  ASSERT_EQ(HandOver(), "");
  const size_t without_sessions = written_at_last_;
  fresh_.reset();
  old_.server->attach().SetWatching(true);
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
  const rocegw_qp_reply qp = client.CreateQp(pd, cq.handle);
  const size_t linked = old_.LinkedObjects();
  ASSERT_EQ(HandOver(), "");
  EXPECT_LT(written_at_last_, without_sessions + 50);
  EXPECT_EQ(fresh_->LinkedObjects(), linked);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
}

// Its first version knows no sessions that go ahead.
TEST_F(SessionHandOver, SessionThatRests_GoesToAGatewayOfTheFirstVersion) {
  const auto attached = AttachToOld();
  ASSERT_TRUE(attached->Hello());
  const uint32_t pd = attached->AllocPd(attached->OpenContext());
  versions_.Set(hand_over::StateKind::kSessions, 1);
  versions_.Set(hand_over::StateKind::kSession, 1);
  looks_ = true;
  ASSERT_EQ(HandOver(), "");
  attached->Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(attached->error(), 0);
}

TEST_F(SessionHandOver, SessionThatChangesBetweenBothLooks_IsHandedOverAtLast) {
  looks_ = true;
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  uint32_t pd = 0;
  between_looks_ = [&] { pd = client.AllocPd(context); };
  ASSERT_EQ(HandOver(), "");
  EXPECT_GT(written_at_last_, 100u);
  client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(SessionHandOver, SessionThatEndsOrBeginsBetweenBothLooks_IsLeftOutOrWrittenAtLast) {
  looks_ = true;
  auto first = AttachToOld();
  ASSERT_TRUE(first->Hello());
  std::unique_ptr<TestClient> second;
  between_looks_ = [&] {
    first.reset();
    old_.Settle();
    second = AttachToOld();
    ASSERT_TRUE(second->Hello());
  };
  ASSERT_EQ(HandOver(), "");
  EXPECT_EQ(fresh_->server->session_count(), 1u);
  EXPECT_NE(second->OpenContext(), 0u);
}

TEST_F(SessionHandOver, SessionThatChangesAfterwards_PreventsOneHandOver) {
  looks_ = true;
  auto attached = AttachToOld();
  ASSERT_TRUE(attached->Hello());
  const uint32_t context = attached->OpenContext();
  behind_looks_ = [&] { attached->AllocPd(context); };
  EXPECT_EQ(HandOver(), "a program changed or ended");
  EXPECT_FALSE(old_.server->attach().are_unchanged());
  old_.server->attach().SetWatching(true);
  // The next attempt leaves sessions of the pool for the end, and the session changes again.
  EXPECT_EQ(HandOver(), "");
}

TEST_F(SessionHandOver, SessionThatEndsAfterwards_PreventsOneHandOver) {
  looks_ = true;
  auto attached = AttachToOld();
  ASSERT_TRUE(attached->Hello());
  const auto other = AttachToOld();
  ASSERT_TRUE(other->Hello());
  behind_looks_ = [&] {
    attached.reset();
    old_.Settle();
  };
  EXPECT_EQ(HandOver(), "a program changed or ended");
  old_.server->attach().SetWatching(true);
  behind_looks_ = [&] { other->OpenContext(); };
  EXPECT_EQ(HandOver(), "");
}

TEST_F(SessionHandOver, WindowsModerationAndGroups_GoOver) {
  for (const bool ahead : {false, true}) {
    SCOPED_TRACE(ahead);
    looks_ = ahead;
    fresh_.reset();
    const auto attached = AttachToOld();
    TestClient& client = *attached;
    ASSERT_TRUE(client.Hello());
    const uint32_t context = client.OpenContext();
    const uint32_t pd = client.AllocPd(context);
    const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
    auto moderate = TestClient::Request<rocegw_moderate_cq>(ROCEGW_MSG_MODERATE_CQ);
    moderate.cq = cq.handle;
    moderate.count = 7;
    moderate.period = 50;
    client.Call<rocegw_object_reply>(moderate);
    const auto ask = TestClient::Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
    auto window = ask;
    window.pd = pd;
    window.type = static_cast<uint32_t>(verbs::MwType::kType2);
    const auto mw = client.Call<rocegw_mw_reply>(window);
    const rocegw_qp_reply qp = client.CreateQp(pd, cq.handle, ROCEGW_QPT_UD);
    const wire::Gid group = wire::Gid::FromV4(0xE0000105);
    auto join = TestClient::Request<rocegw_multicast>(ROCEGW_MSG_ATTACH_MULTICAST);
    join.qp = qp.handle;
    std::copy(group.bytes.begin(), group.bytes.end(), join.group);
    client.Call<rocegw_object_reply>(join);
    ASSERT_EQ(client.error(), 0);
    // Workers count completions and bind windows without the control thread.
    auto& linked = *std::ranges::find_if(old_.workers[0]->sessions,
                                         [&](auto& one) { return !one.second.windows.empty(); });
    linked.second.moderated[cq.handle].moderation->waiting = 3;
    ASSERT_EQ(HandOver(), "");

    const FakeWorker& worker = *fresh_->workers[1];
    ASSERT_EQ(worker.sessions.size(), 1u);
    const FakeWorker::Session& session = worker.sessions.begin()->second;
    const worker::ModerateCq& moderated = session.moderated.at(cq.handle);
    EXPECT_EQ(moderated.count, 7u);
    EXPECT_EQ(moderated.period, Microseconds(50));
    EXPECT_EQ(moderated.moderation->waiting, 3u);
    ASSERT_EQ(session.windows.size(), 1u);
    EXPECT_EQ(session.windows.begin()->second->type(), verbs::MwType::kType2);
    EXPECT_EQ(worker.multicast.count({0, group}), 1u);

    join.header.type = ROCEGW_MSG_DETACH_MULTICAST;
    client.Call<rocegw_object_reply>(join);
    EXPECT_EQ(client.error(), 0);
    EXPECT_EQ(worker.multicast.count({0, group}), 0u);
    client.Object(ROCEGW_MSG_DEALLOC_MW, mw.handle);
    EXPECT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
    client.Object(ROCEGW_MSG_DESTROY_CQ, cq.handle);
    EXPECT_EQ(client.error(), 0);
    client.Object(ROCEGW_MSG_DEALLOC_PD, pd);
    EXPECT_EQ(client.error(), 0);
    EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
    old_.server->attach().EndAll("the next round has its own");
    old_.server->attach().SetWatching(true);
    old_.Settle();
  }
}

TEST_F(SessionHandOver, PoolThatIsNotTrusted_HasACopierAgain) {
  static constexpr char kUntrusted[] = "tenants/default/pools/untrusted";
  configure_ = [](SessionHost& host) {
    tenant::PoolSettings settings;
    settings.name = kUntrusted;
    host.server->services().pools.SetPool(settings);
  };
  configure_(old_);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  old_.server->Attach(UniqueFd(ends[1]), kUntrusted);
  TestClient client([this] { (fresh_ ? *fresh_ : old_).Settle(); }, UniqueFd(ends[0]));
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
  const rocegw_qp_reply qp = client.CreateQp(pd, cq.handle);
  ASSERT_EQ(client.error(), 0);
  ASSERT_NE(old_.workers[0]->sessions.begin()->second.link.copier, nullptr);
  ASSERT_EQ(HandOver(), "");
  EXPECT_NE(fresh_->workers[0]->sessions.begin()->second.link.copier, nullptr);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), 0);
}

// Amounts that programs hold count against the limits of the successor, which may be others.
TEST_F(SessionHandOver, AmountsInUse_CountAgainstTheSuccessorsLimits) {
  static constexpr char kSmall[] = "tenants/default/pools/small";
  uint64_t most = 3;
  configure_ = [&most](SessionHost& host) {
    tenant::PoolSettings settings;
    settings.name = kSmall;
    settings.quota.peak[session::Resource::kQps] = most;
    host.server->services().pools.SetPool(settings);
  };
  configure_(old_);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  old_.server->Attach(UniqueFd(ends[1]), kSmall);
  TestClient client([this] { (fresh_ ? *fresh_ : old_).Settle(); }, UniqueFd(ends[0]));
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
  const rocegw_qp_reply first = client.CreateQp(pd, cq.handle);
  const rocegw_qp_reply second = client.CreateQp(pd, cq.handle);
  ASSERT_EQ(client.error(), 0);
  // Lowered meanwhile: it takes nothing from the program, and gives nothing until less is held.
  most = 1;
  ASSERT_EQ(HandOver(), "");
  const tenant::Pool& pool = *fresh_->server->services().pools.FindPool(kSmall);
  EXPECT_EQ(pool.used(session::Resource::kQps), 2u);
  (void)client.CreateQp(pd, cq.handle);
  EXPECT_EQ(client.error(), ENOMEM);
  client.Object(ROCEGW_MSG_DESTROY_QP, first.handle);
  EXPECT_EQ(client.error(), 0);
  (void)client.CreateQp(pd, cq.handle);
  EXPECT_EQ(client.error(), ENOMEM) << "one is held, and one is allowed";
  client.Object(ROCEGW_MSG_DESTROY_QP, second.handle);
  (void)client.CreateQp(pd, cq.handle);
  EXPECT_EQ(client.error(), 0);
}

TEST_F(SessionHandOver, AMissingDescriptor_IsRefused) {
  for (const FdKind kind : {FdKind::kClientSocket, FdKind::kWake, FdKind::kEvents}) {
    fresh_.reset();
    SCOPED_TRACE(static_cast<int>(kind));
    drop_descriptor_ = kind;
    const auto attached = AttachToOld();
    TestClient& client = *attached;
    ASSERT_TRUE(client.Hello());
    client.OpenContext();
    EXPECT_EQ(HandOver(), kind == FdKind::kClientSocket ? "session without a connection"
                                                        : "descriptor of a session is missing");
    old_.server->attach().SetWatching(true);
  }
}

}  // namespace
}  // namespace rocegw::testing
