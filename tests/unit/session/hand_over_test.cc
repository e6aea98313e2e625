// SPDX-License-Identifier: Apache-2.0
// Hand-over of sessions to another session server, as between two processes: the successor has
// copies of the descriptors and reads the state. The program keeps its connection and its memory.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gateway/hand_over/state_stream.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

class SessionHandOver : public ::testing::Test {
 protected:
  static InheritedFds Copies(SessionHost& host) {
    OfferedFds offered;
    host.server->attach().OfferSessions(offered);
    InheritedFds copies;
    for (const OfferedFd& one : offered) copies.Add(one.kind, one.name, UniqueFd(::dup(one.fd)));
    return copies;
  }
  // Hands the sessions of `old_` over to a new host. Returns why they were refused; "": read.
  std::string HandOver() {
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    StateStream out(bytes, ControlLoop::Now(), versions);
    old_.server->HandOverFoundation(out);
    if (looks_) old_.server->attach().LookAtSessions(versions);
    if (between_looks_) between_looks_();
    old_.server->HandOverUnchanged(out);
    if (behind_looks_) behind_looks_();
    old_.server->attach().SetWatching(false);
    if (out.ok()) old_.server->HandOverNumbers(out);
    const size_t before = bytes.size();
    if (out.ok()) old_.server->HandOverSessions(out);
    if (!out.ok()) return out.failure();
    written_at_last_ = bytes.size() - before;
    InheritedFds copies = Copies(old_);
    if (drop_descriptor_) copies.Discard(*drop_descriptor_);
    session::Options options;
    options.awaits_state = true;
    fresh_ = std::make_unique<SessionHost>(2, options);
    if (configure_) configure_(*fresh_);
    fresh_->server->attach().SetWatching(false);
    fresh_->server->attach().Inherit(&copies);
    StateStream in(bytes, ControlLoop::Now());
    fresh_->server->HandOverFoundation(in);
    if (in.ok()) fresh_->server->HandOverUnchanged(in);
    if (in.ok()) fresh_->server->HandOverNumbers(in);
    if (in.ok()) fresh_->server->HandOverSessions(in);
    fresh_->server->attach().Inherit(nullptr);
    if (!in.ok()) return in.failure();
    if (!in.at_end()) return "state is longer than what was read";
    fresh_->Settle();
    EXPECT_EQ(fresh_->server->attach().link_error(), 0);
    fresh_->server->attach().SetWatching(true);
    return "";
  }
  // The client's side of the daemon is the old host until it hands over.
  std::unique_ptr<TestClient> AttachToOld() {
    return std::make_unique<TestClient>([this] { (fresh_ ? *fresh_ : old_).Settle(); },
                                        ConnectTo(old_));
  }
  static UniqueFd ConnectTo(SessionHost& host) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    host.server->Attach(UniqueFd(ends[1]));
    return UniqueFd(ends[0]);
  }

  // The old host ends last: its end shuts connections down.
  SessionHost old_{2};
  std::unique_ptr<SessionHost> fresh_;
  std::optional<FdKind> drop_descriptor_;
  bool looks_ = false;  // hand over unchanged sessions ahead
  std::function<void()> between_looks_;
  std::function<void()> behind_looks_;
  std::function<void(SessionHost&)> configure_;
  size_t written_at_last_ = 0;  // bytes of the sessions that were not written ahead
};

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
  EXPECT_EQ(old_.server->attach().NotHandedOver(), "");
  auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
  request.context = context;
  client.Call<rocegw_object_reply>(request);
  ASSERT_EQ(client.error(), 0);
  EXPECT_NE(old_.server->attach().NotHandedOver().find("has an XRC domain"), std::string::npos);
  EXPECT_EQ(HandOver(), "session is not at rest");
}

TEST_F(SessionHandOver, SessionThatRests_IsHandedOverAhead) {
  looks_ = true;
  const auto attached = AttachToOld();
  TestClient& client = *attached;
  ASSERT_TRUE(client.Hello());
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const rocegw_cq_reply cq = client.CreateCq(context, 64, 0);
  const rocegw_qp_reply qp = client.CreateQp(pd, cq.handle);
  const size_t linked = old_.LinkedObjects();
  ASSERT_EQ(HandOver(), "");
  EXPECT_LT(written_at_last_, 100u);
  EXPECT_EQ(fresh_->LinkedObjects(), linked);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(fresh_->BrokenRules(), std::vector<std::string>{});
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
