// SPDX-License-Identifier: Apache-2.0
// Contexts through the attach protocol: links to workers, events, what closing takes, limits.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "gateway/verbs/types.h"
#include "tests/unit/session/objects/objects_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(Objects, OpenContext_AnnouncesWorkersWithLinesAndEventfds) {
  ASSERT_EQ(client.wake_fds.size(), 2u);
  for (uint32_t w = 0; w < 2; ++w) {
    ASSERT_TRUE(client.wake_fds[w].valid());
    ASSERT_NE(client.At(client.lines[w]), nullptr);
    On(w).link.line->need_wakeup = 77;
    EXPECT_EQ(reinterpret_cast<rocegw_worker_line*>(client.At(client.lines[w]))->need_wakeup, 77u);
    // Both sides have the same eventfd.
    const uint64_t one = 1;
    ASSERT_EQ(::write(client.wake_fds[w].get(), &one, sizeof one), 8);
    uint64_t value = 0;
    EXPECT_EQ(::read(On(w).link.wake_fd, &value, sizeof value), 8);
  }
  EXPECT_TRUE(client.chunks.begin()->second.read_only);
}

TEST_F(Objects, OpenContext_SecondOneLinksNothingAgain) {
  EXPECT_NE(client.OpenContext(), 0u);
  EXPECT_EQ(client.error(), 0);
  EXPECT_EQ(client.OpenContext(5), 0u);
  EXPECT_EQ(client.error(), ENODEV);
}

TEST_F(Objects, AsyncEvent_ReachesTheQpsContextAndIsCounted) {
  const uint32_t other = client.OpenContext();
  const UniqueFd other_events = std::move(client.received_fd);
  ASSERT_NE(other, 0u);
  const uint32_t mine = client.OpenContext();
  const UniqueFd events = std::move(client.received_fd);
  const uint32_t my_pd = client.AllocPd(mine);
  const auto qp = client.CreateQp(my_pd, client.CreateCq(mine).handle);
  ASSERT_EQ(client.error(), 0);
  worker::AsyncEventRaised raised;
  raised.session = SessionId{host.workers[0]->sessions.begin()->first};
  raised.event = verbs::AsyncEvent::kQpFatal;
  raised.kind = ROCEGW_OBJECT_QP;
  raised.handle = qp.handle;
  raised.cookie = 9;
  raised.qpn = Qpn{qp.qpn};
  host.workers[qp.worker]->Raise({0, raised});
  raised.qpn = Qpn{qp.qpn ^ 1};  // number of an earlier owner of the handle
  host.workers[qp.worker]->Raise({0, raised});
  host.Settle();
  rocegw_async_event event{};
  ASSERT_EQ(::recv(events.get(), &event, sizeof event, MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof event));
  EXPECT_EQ(event.type, 1u);
  EXPECT_EQ(event.cookie, 9u);
  EXPECT_EQ(event.handle, qp.handle);
  EXPECT_EQ(::recv(events.get(), &event, sizeof event, MSG_DONTWAIT), -1);
  EXPECT_EQ(::recv(other_events.get(), &event, sizeof event, MSG_DONTWAIT), -1);
  EXPECT_EQ(client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle).events_reported, 1u);
}

TEST_F(Objects, DeviceChanges_ReachItsContexts) {
  const uint32_t other = client.OpenContext();
  ASSERT_NE(other, 0u);
  const UniqueFd events = std::move(client.received_fd);
  const auto next = [&] {
    rocegw_async_event event{};
    event.type = 1000;
    (void)!::recv(events.get(), &event, sizeof event, MSG_DONTWAIT);
    EXPECT_TRUE(event.type == 1000 || event.kind == ROCEGW_OBJECT_PORT);
    return event.type;
  };
  session::Device device = SessionHost::MakeDevice();
  device.up = false;
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 10u);
  device.up = true;
  device.gids.push_back(wire::Gid::FromV4(0x0A0A0A0A));
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 9u);
  EXPECT_EQ(next(), 18u);
  device.active_mtu = 5;
  host.server->UpdateDevice(0, device);
  EXPECT_EQ(next(), 1000u);
  // Queue pairs created from now on see the new address.
  const auto qp = client.CreateQp(pd, Cq());
  EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.gids->entries[3], wire::Gid::FromV4(0x0A0A0A0A));
  EXPECT_EQ(On(qp.worker).qps[qp.qpn].config.port_mtu, 5);
}

TEST_F(Objects, CloseContext_TakesItsObjectsAndLeavesOthers) {
  const auto qp = client.CreateQp(pd, Cq());
  client.RegMr(pd, 4096, 64);
  const uint32_t other = client.OpenContext();
  const uint32_t other_pd = client.AllocPd(other);
  const auto kept = client.RegMr(other_pd, 4096, 64);
  client.Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
  EXPECT_EQ(client.error(), 0);
  for (size_t w = 0; w < 2; ++w) {
    EXPECT_TRUE(On(w).qps.empty());
    EXPECT_TRUE(On(w).cqs.empty());
    EXPECT_EQ(On(w).mrs.size(), 1u);
    EXPECT_TRUE(On(w).mrs.contains(kept.rkey));
  }
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_EQ(client.error(), EINVAL);
  client.Object(ROCEGW_MSG_ALLOC_PD, context);
  EXPECT_EQ(client.error(), EINVAL);
}

TEST_F(Objects, Limits_BeyondIsEnomem) {
  session::Options options;
  options.limits.qps = 1;
  options.limits.mrs = 1;
  options.limits.registered_bytes = 100;
  options.limits.cqs = 1;
  options.limits.pds = 1;
  SessionHost small(2, options);
  TestClient one(small);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  EXPECT_EQ(one.AllocPd(c), 0u);
  EXPECT_EQ(one.error(), ENOMEM);
  const uint32_t cq = one.CreateCq(c).handle;
  one.CreateCq(c);
  EXPECT_EQ(one.error(), ENOMEM);
  const auto qp = one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), 0);
  one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), ENOMEM);
  one.RegMr(p, 4096, 101);
  EXPECT_EQ(one.error(), ENOMEM);
  const auto mr = one.RegMr(p, 4096, 50);
  EXPECT_EQ(one.error(), 0);
  one.Call<rocegw_mr_reply>(Rereg(mr.handle, p, 4096, 101, 7));
  EXPECT_EQ(one.error(), ENOMEM);
  one.Call<rocegw_mr_reply>(Rereg(mr.handle, p, 4096, 100, 7));
  EXPECT_EQ(one.error(), 0) << "what it has counts once";
  one.RegMr(p, 4096, 10);
  EXPECT_EQ(one.error(), ENOMEM);
  one.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  one.CreateQp(p, cq);
  EXPECT_EQ(one.error(), 0) << "what was given back can be had again";
}

TEST_F(Objects, SegmentLimit_IsEnomemAndTheSessionLives) {
  session::Options options;
  options.limits.segment_bytes = 6 << 20;
  SessionHost small(1, options);
  TestClient one(small);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  EXPECT_NE(one.CreateCq(c, 1024).handle, 0u);
  one.CreateCq(c, 1 << 20);
  EXPECT_EQ(one.error(), ENOMEM);
  EXPECT_NE(one.CreateCq(c, 1024).handle, 0u);
  EXPECT_LE(small.server->services().pools.gateway().used(session::Resource::kSegmentBytes),
            6u << 20);
}

TEST_F(Objects, SmallRings_ManyMessagesStillArriveInOrder) {
  SessionHost tight(2, {}, 2);
  TestClient one(tight);
  ASSERT_TRUE(one.Hello());
  const uint32_t c = one.OpenContext();
  const uint32_t p = one.AllocPd(c);
  const uint32_t cq = one.CreateCq(c).handle;
  for (int i = 0; i < 50; ++i) {
    one.CreateQp(p, cq);
    ASSERT_EQ(one.error(), 0);
    one.RegMr(p, 4096, 64);
    ASSERT_EQ(one.error(), 0);
  }
  one.Disconnect();
  tight.Settle();
  EXPECT_EQ(tight.LinkedObjects(), 0u);
  EXPECT_EQ(tight.BrokenRules(), std::vector<std::string>());
}

}  // namespace
}  // namespace rocegw::testing
