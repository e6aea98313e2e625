// SPDX-License-Identifier: Apache-2.0
// XRC through the attach protocol: sharing of a domain, lifetime of its objects, and cleanup when
// its users end in any order.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

#include "tests/support/session/session_host.h"

namespace rocegw::testing::xrc_sessions {
namespace {

constexpr uint32_t kCreate = ROCEGW_XRCD_CREATE;
constexpr uint32_t kExclusive = ROCEGW_XRCD_CREATE | ROCEGW_XRCD_EXCLUSIVE;

// Program with everything that XRC needs.
struct Program : TestProgram {
  using TestProgram::TestProgram;

  // Returns 0 if refused.
  uint32_t OpenXrcd(int fd, uint32_t flags = kCreate) {
    auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
    request.context = context;
    request.flags = flags;
    request.named = fd >= 0 ? 1 : 0;
    return client.Call<rocegw_object_reply>(request, fd).handle;
  }
  rocegw_srq_reply CreateSrq(uint32_t xrcd, uint32_t completions) {
    auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    request.pd = pd;
    request.max_wr = 8;
    request.max_sge = 1;
    request.xrcd = xrcd;
    request.cq = completions;
    return client.Call<rocegw_srq_reply>(request);
  }
  rocegw_srq_reply CreateSrq(uint32_t xrcd) { return CreateSrq(xrcd, cq); }
  rocegw_qp_reply CreateQp(uint32_t xrcd) {
    auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
    request.type = ROCEGW_QPT_XRC_RECV;
    request.xrcd = xrcd;
    request.cookie = 700;
    return client.Call<rocegw_qp_reply>(request);
  }
  rocegw_qp_reply OpenQp(uint32_t xrcd, uint32_t qpn) {
    auto request = TestClient::Request<rocegw_open_qp>(ROCEGW_MSG_OPEN_QP);
    request.xrcd = xrcd;
    request.qpn = qpn;
    request.cookie = 800;
    return client.Call<rocegw_qp_reply>(request);
  }
  int Do(uint32_t type, uint32_t handle) {
    client.Object(type, handle);
    return client.error();
  }
};

class XrcSessions : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  static UniqueFd File() { return UniqueFd(::memfd_create("xrc", MFD_CLOEXEC)); }
  // Returns the domains that workers know, with their queue pairs.
  std::vector<const FakeWorker::Session*> Domains() const {
    std::vector<const FakeWorker::Session*> found;
    for (const auto& worker : host.workers)
      for (const auto& [id, session] : worker->sessions)
        if (session.link.xrc_domain) found.push_back(&session);
    return found;
  }
  int64_t Used(tenant::Resource resource) {
    return static_cast<int64_t>(
        host.server->services().pools.FindPool(session::kDefaultPool)->used(resource));
  }

  SessionHost host;
  UniqueFd file = File();
};

// A domain keeps its file open in the gateway.
TEST_F(XrcSessions, FilesOfDomains_AreDescriptorsOfThePool) {
  Program one(host);
  Program two(host);
  const int64_t before = Used(tenant::Resource::kDescriptors);
  const UniqueFd other = File();
  const uint32_t first = one.OpenXrcd(file.get());
  const uint32_t second = one.OpenXrcd(other.get());
  EXPECT_EQ(Used(tenant::Resource::kDescriptors), before + 2);
  const uint32_t again = two.OpenXrcd(file.get());
  ASSERT_NE(one.OpenXrcd(-1), 0u);
  EXPECT_EQ(Used(tenant::Resource::kDescriptors), before + 2) << "one descriptor a file";
  tenant::PoolSettings settings =
      host.server->services().pools.FindPool(session::kDefaultPool)->settings();
  settings.quota.peak[tenant::Resource::kDescriptors] = static_cast<uint64_t>(before) + 2;
  host.server->services().pools.SetPool(settings);
  const UniqueFd third = File();
  EXPECT_EQ(one.OpenXrcd(third.get()), 0u);
  EXPECT_EQ(one.client.error(), EMFILE);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, first), 0);
  EXPECT_EQ(Used(tenant::Resource::kDescriptors), before + 2) << "another program has it open";
  EXPECT_EQ(two.Do(ROCEGW_MSG_CLOSE_XRCD, again), 0);
  EXPECT_EQ(Used(tenant::Resource::kDescriptors), before + 1);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, second), 0);
  EXPECT_EQ(Used(tenant::Resource::kDescriptors), before);
  EXPECT_NE(one.OpenXrcd(third.get()), 0u);
}

TEST_F(XrcSessions, SameFile_IsTheSameDomain_AnotherOneIsNot) {
  Program one(host);
  Program two(host);
  const UniqueFd again(::dup(file.get()));
  const UniqueFd other = File();
  const uint32_t first = one.OpenXrcd(file.get());
  const uint32_t second = two.OpenXrcd(again.get());
  ASSERT_NE(first, 0u);
  ASSERT_NE(second, 0u);
  EXPECT_EQ(Domains().size(), 1u);
  ASSERT_NE(one.OpenXrcd(other.get()), 0u);
  EXPECT_EQ(Domains().size(), 2u);
  ASSERT_NE(one.OpenXrcd(-1), 0u);
  ASSERT_NE(one.OpenXrcd(-1), 0u);
  EXPECT_EQ(Domains().size(), 4u) << "without a file each is its own";
  const rocegw_qp_reply qp = one.CreateQp(first);
  EXPECT_EQ(two.OpenQp(second, qp.qpn).qpn, qp.qpn);
  EXPECT_EQ(two.client.error(), 0);
}

TEST_F(XrcSessions, Flags_AreThoseOfOpen) {
  Program one(host);
  EXPECT_EQ(one.OpenXrcd(file.get(), 0), 0u);
  EXPECT_EQ(one.client.error(), EAGAIN) << "there is none, and none may be made";
  ASSERT_NE(one.OpenXrcd(file.get(), kExclusive), 0u);
  EXPECT_EQ(one.OpenXrcd(file.get(), kExclusive), 0u);
  EXPECT_EQ(one.client.error(), EINVAL);
  EXPECT_NE(one.OpenXrcd(file.get(), 0), 0u);
  EXPECT_EQ(one.OpenXrcd(file.get(), 4), 0u);
  EXPECT_EQ(one.client.error(), EINVAL);
  auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
  request.context = one.context;
  request.named = 1;
  one.client.Call<rocegw_object_reply>(request);
  EXPECT_EQ(one.client.error(), EBADF) << "no descriptor came along";
  request.context = 77;
  one.client.Call<rocegw_object_reply>(request, file.get());
  EXPECT_EQ(one.client.error(), EINVAL);
}

TEST_F(XrcSessions, AnotherPool_HasAnotherDomain) {
  tenant::TenantSettings tenant;
  tenant.name = "tenants/apart";
  host.server->services().pools.SetTenant(tenant);
  tenant::PoolSettings pool;
  pool.name = "tenants/apart/pools/a";
  pool.trusted = true;
  host.server->services().pools.SetPool(pool);
  Program one(host);
  Program stranger(host, pool.name);
  const uint32_t first = one.OpenXrcd(file.get());
  const rocegw_qp_reply qp = one.CreateQp(first);
  EXPECT_EQ(stranger.OpenXrcd(file.get(), 0), 0u);
  EXPECT_EQ(stranger.client.error(), EAGAIN);
  const uint32_t theirs = stranger.OpenXrcd(file.get());
  ASSERT_NE(theirs, 0u);
  EXPECT_EQ(Domains().size(), 2u);
  EXPECT_EQ(stranger.OpenQp(theirs, qp.qpn).qpn, 0u);
  EXPECT_EQ(stranger.client.error(), EINVAL);
}

TEST_F(XrcSessions, Queue_HasANumber_AndIsWhereItsDomainIs) {
  Program one(host);
  Program two(host);
  const rocegw_srq_reply first = one.CreateSrq(one.OpenXrcd(file.get()));
  const rocegw_srq_reply second = two.CreateSrq(two.OpenXrcd(file.get()));
  ASSERT_EQ(one.client.error(), 0);
  ASSERT_EQ(two.client.error(), 0);
  EXPECT_NE(first.number, 0u);
  EXPECT_NE(first.number, second.number);
  size_t found = 0;
  for (const auto& worker : host.workers) {
    for (const auto& [id, session] : worker->sessions) {
      for (const auto& [handle, srq] : session.srqs) {
        ++found;
        EXPECT_TRUE(worker->sessions.at(srq.domain.value).link.xrc_domain);
        EXPECT_EQ(srq.pd, id == 1 ? one.pd : two.pd);
        EXPECT_EQ(srq.number, id == 1 ? first.number : second.number);
        EXPECT_EQ(srq.payload_slots, 8u);
        EXPECT_NE(srq.payload, nullptr);
      }
    }
  }
  EXPECT_EQ(found, 2u);
}

TEST_F(XrcSessions, Misuse_IsRefused) {
  Program one(host);
  const uint32_t xrcd = one.OpenXrcd(-1);
  one.CreateSrq(xrcd, 0);
  EXPECT_EQ(one.client.error(), EINVAL) << "without a completion queue";
  one.CreateSrq(xrcd + 1);
  EXPECT_EQ(one.client.error(), EINVAL);
  one.CreateSrq(0, one.cq);
  EXPECT_EQ(one.client.error(), EINVAL) << "a basic one with a completion queue";
  one.CreateQp(xrcd + 1);
  EXPECT_EQ(one.client.error(), EINVAL);
  one.OpenQp(xrcd, 0x123456);
  EXPECT_EQ(one.client.error(), EINVAL);
  const rocegw_srq_reply srq = one.CreateSrq(xrcd);
  auto request = TestClient::QpRequest(one.pd, one.cq);
  request.srq = srq.handle;
  one.client.Call<rocegw_qp_reply>(request);
  EXPECT_EQ(one.client.error(), EINVAL) << "RC takes nothing from it";
  request.srq = 0;
  request.type = ROCEGW_QPT_XRC_SEND;
  const rocegw_qp_reply sender = one.client.Call<rocegw_qp_reply>(request);
  ASSERT_EQ(one.client.error(), 0);
  EXPECT_EQ(sender.rq_entries, 0u);
  request.srq = srq.handle;
  one.client.Call<rocegw_qp_reply>(request);
  EXPECT_EQ(one.client.error(), EINVAL);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_CQ, one.cq), EBUSY);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DEALLOC_PD, one.pd), EBUSY);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, xrcd), EBUSY);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_SRQ, srq.handle), 0);
  const rocegw_qp_reply qp = one.CreateQp(xrcd);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, xrcd), EBUSY);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_QP, qp.handle), 0);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, xrcd), 0);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, xrcd), EINVAL);
  EXPECT_TRUE(Domains().empty());
}

TEST_F(XrcSessions, QueuePair_LivesAsLongAsSomebodyHasItOpen) {
  Program one(host);
  Program two(host);
  const uint32_t mine = one.OpenXrcd(file.get());
  const uint32_t theirs = two.OpenXrcd(file.get());
  const rocegw_qp_reply made = one.CreateQp(mine);
  EXPECT_EQ(made.control.length, 0u) << "it has no queues";
  EXPECT_EQ(made.sq_entries, 0u);
  const rocegw_qp_reply opened = two.OpenQp(theirs, made.qpn);
  EXPECT_EQ(one.Do(ROCEGW_MSG_DESTROY_QP, made.handle), 0);
  ASSERT_EQ(Domains().size(), 1u);
  EXPECT_EQ(Domains()[0]->qps.count(made.qpn), 1u);
  EXPECT_EQ(one.OpenQp(mine, made.qpn).qpn, made.qpn) << "and may be opened again";
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_CONTEXT, one.context), 0);
  EXPECT_EQ(Domains()[0]->qps.count(made.qpn), 1u);
  EXPECT_EQ(two.Do(ROCEGW_MSG_DESTROY_QP, opened.handle), 0);
  EXPECT_TRUE(Domains()[0]->qps.empty());
  two.OpenQp(theirs, made.qpn);
  EXPECT_EQ(two.client.error(), EINVAL);
}

TEST_F(XrcSessions, QueuePair_MovesForWhoeverHasIt) {
  Program one(host);
  Program two(host);
  const rocegw_qp_reply made = one.CreateQp(one.OpenXrcd(file.get()));
  const rocegw_qp_reply opened = two.OpenQp(two.OpenXrcd(file.get()), made.qpn);
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kInit);
  attr.port_num = 1;
  const uint32_t init =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  EXPECT_EQ(two.client.Modify(opened.handle, init, attr), 0);
  auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
  query.handle = made.handle;
  EXPECT_EQ(one.client.Call<rocegw_query_qp_reply>(query).attr.qp_state, attr.qp_state);
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRts);
  EXPECT_EQ(one.client.Modify(made.handle, verbs::kAttrState, attr), EINVAL);
}

TEST_F(XrcSessions, Events_ReachEverybodyWhoHasIt) {
  Program one(host);
  Program two(host);
  auto open = TestClient::Request<rocegw_open_context>(ROCEGW_MSG_OPEN_CONTEXT);
  const uint32_t context = two.client.Call<rocegw_object_reply>(open).handle;
  const UniqueFd events = std::move(two.client.received_fd);
  two.context = context;
  const rocegw_qp_reply made = one.CreateQp(one.OpenXrcd(file.get()));
  const rocegw_qp_reply opened = two.OpenQp(two.OpenXrcd(file.get()), made.qpn);
  const SessionId domain = Domains()[0]->link.session;
  host.workers[made.worker]->Raise(
      {0, worker::AsyncEventRaised{.session = domain,
                                   .event = verbs::AsyncEvent::kQpRequestError,
                                   .kind = ROCEGW_OBJECT_QP,
                                   .handle = 0,
                                   .cookie = 0,
                                   .qpn = Qpn{made.qpn}}});
  host.Settle();
  rocegw_async_event event{};
  ASSERT_EQ(::recv(events.get(), &event, sizeof event, MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof event));
  EXPECT_EQ(event.handle, opened.handle);
  EXPECT_EQ(event.cookie, 800u);
  EXPECT_EQ(event.type, static_cast<uint32_t>(verbs::AsyncEvent::kQpRequestError));
}

// Kills each of them first once.
TEST_F(XrcSessions, DeathOfAnyUser_LeavesTheOthersTheirs_AndNothingAtTheEnd) {
  for (const bool maker_first : {true, false}) {
    SCOPED_TRACE(maker_first);
    auto maker = std::make_unique<Program>(host);
    auto other = std::make_unique<Program>(host);
    const uint32_t mine = maker->OpenXrcd(file.get());
    const uint32_t theirs = other->OpenXrcd(file.get());
    const rocegw_qp_reply made = maker->CreateQp(mine);
    other->OpenQp(theirs, made.qpn);
    maker->CreateSrq(mine);
    const rocegw_srq_reply second = other->CreateSrq(theirs);
    ASSERT_EQ(other->client.error(), 0);
    (maker_first ? maker : other)->client.Disconnect();
    host.Settle();
    ASSERT_EQ(Domains().size(), 1u);
    EXPECT_EQ(Domains()[0]->qps.count(made.qpn), 1u);
    if (maker_first) {
      EXPECT_EQ(other->Do(ROCEGW_MSG_QUERY_SRQ, second.handle), 0);
    }
    (maker_first ? other : maker)->client.Disconnect();
    host.Settle();
    EXPECT_TRUE(Domains().empty());
    EXPECT_EQ(host.LinkedObjects(), 0u);
    for (const tenant::Resource resource :
         {tenant::Resource::kPds, tenant::Resource::kQps, tenant::Resource::kSrqs})
      EXPECT_EQ(Used(resource), 0);
  }
}

TEST_F(XrcSessions, Failure_LeavesNothing) {
  Program one(host);
  const uint32_t xrcd = one.OpenXrcd(-1);
  const int64_t qps = Used(tenant::Resource::kQps);
  for (const auto& worker : host.workers) worker->fail_next = ENOMEM;
  one.CreateQp(xrcd);
  EXPECT_EQ(one.client.error(), ENOMEM);
  for (const auto& worker : host.workers) worker->fail_next = 0;
  EXPECT_EQ(Used(tenant::Resource::kQps), qps);
  EXPECT_EQ(one.Do(ROCEGW_MSG_CLOSE_XRCD, xrcd), 0);
}

TEST_F(XrcSessions, Quotas_CountDomainsAndHandles) {
  Program one(host);
  const int64_t pds = Used(tenant::Resource::kPds);
  const int64_t qps = Used(tenant::Resource::kQps);
  const uint32_t xrcd = one.OpenXrcd(file.get());
  EXPECT_EQ(Used(tenant::Resource::kPds), pds + 1);
  const rocegw_qp_reply made = one.CreateQp(xrcd);
  one.OpenQp(xrcd, made.qpn);
  EXPECT_EQ(Used(tenant::Resource::kQps), qps + 2);
}

}  // namespace
}  // namespace rocegw::testing::xrc_sessions
