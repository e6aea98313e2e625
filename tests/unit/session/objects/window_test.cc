// SPDX-License-Identifier: Apache-2.0
// Memory windows as objects of a session: registered with all workers, counted as regions, and
// holding the objects they depend on.
#include <gtest/gtest.h>

#include "tests/support/session/session_host.h"

namespace rocegw::testing::window {
namespace {

constexpr uint32_t kBindable = verbs::kAccessLocalWrite | verbs::kAccessMwBind;

class SessionWindows : public ::testing::Test {
 protected:
  SessionWindows() {
    EXPECT_TRUE(client->Hello());
    Open();
  }
  void Open() {
    context = client->OpenContext();
    pd = client->AllocPd(context);
  }
  rocegw_mw_reply Alloc(uint32_t in, uint32_t type) {
    auto request = TestClient::Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
    request.pd = in;
    request.type = type;
    return client->Call<rocegw_mw_reply>(request);
  }
  // Binds a window like a worker for a request of that queue pair.
  bool Bind(const rocegw_mw_reply& mw, const rocegw_mr_reply& mr) {
    FakeWorker::Session& session = host.workers[0]->sessions.begin()->second;
    const verbs::RemoteUser user{session.link.session, pd, Qpn{9}, {}};
    const verbs::BindRequest wish{.before = MemoryKey{mw.rkey},
                                  .key = MemoryKey{mw.rkey},
                                  .region = MemoryKey{mr.rkey},
                                  .access = verbs::kAccessRemoteRead,
                                  .address = 4096,
                                  .length = 8};
    return session.windows.begin()->second->Bind(user, wish, &session.mrs[mr.rkey]);
  }
  uint64_t used() { return host.server->services().pools.gateway().used(session::Resource::kMrs); }

  SessionHost host;
  std::unique_ptr<TestClient> client = std::make_unique<TestClient>(host);
  uint32_t context = 0;
  uint32_t pd = 0;
};

TEST_F(SessionWindows, Alloc_EveryWorkerKnowsItByTheNameInItsKey) {
  const auto one = Alloc(pd, 1);
  EXPECT_EQ(client->error(), 0);
  const auto two = Alloc(pd, 2);
  EXPECT_EQ(client->error(), 0);
  EXPECT_NE(one.rkey >> 8, two.rkey >> 8);
  EXPECT_EQ(used(), 2u);
  for (const auto& worker : host.workers) {
    const auto& windows = worker->sessions.begin()->second.windows;
    EXPECT_EQ(windows.size(), 2u);
    EXPECT_TRUE(windows.contains(one.rkey >> 8));
  }
  client->Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client->error(), EBUSY);
  client->Object(ROCEGW_MSG_DEALLOC_MW, one.handle);
  EXPECT_EQ(client->error(), 0);
  client->Object(ROCEGW_MSG_DEALLOC_MW, one.handle);
  EXPECT_EQ(client->error(), EINVAL);
  client->Object(ROCEGW_MSG_DEALLOC_MW, two.handle);
  EXPECT_EQ(used(), 0u);
  client->Object(ROCEGW_MSG_DEALLOC_PD, pd);
  EXPECT_EQ(client->error(), 0);
}

TEST_F(SessionWindows, Alloc_WhatMakesNoSense_Refused) {
  Alloc(pd + 1, 1);
  EXPECT_EQ(client->error(), EINVAL);
  for (const uint32_t type : {0u, 3u, 257u}) {
    Alloc(pd, type);
    EXPECT_EQ(client->error(), EINVAL) << type;
  }
  EXPECT_EQ(used(), 0u);
}

TEST_F(SessionWindows, BoundRegion_StaysUntilTheWindowIsGone) {
  const auto mr = client->RegMr(pd, 4096, 64, kBindable);
  const auto mw = Alloc(pd, 2);
  ASSERT_TRUE(Bind(mw, mr));
  client->Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client->error(), EBUSY);
  client->Object(ROCEGW_MSG_DEALLOC_MW, mw.handle);
  EXPECT_EQ(client->error(), 0);
  client->Object(ROCEGW_MSG_DEREG_MR, mr.handle);
  EXPECT_EQ(client->error(), 0);
}

TEST_F(SessionWindows, Snapshot_TellsWhatIsBoundToWhat) {
  client->RegMr(pd, 65536, 64, kBindable);
  const auto mr = client->RegMr(pd, 4096, 64, kBindable);
  const auto bound = Alloc(pd, 2);
  ASSERT_TRUE(Bind(bound, mr));
  const auto unbound = Alloc(pd, 1);
  std::vector<session::MrRow> rows;
  host.server->Snapshot({.mrs = true},
                        [&](const session::StateSnapshot& state) { rows = state.mrs; });
  host.Settle();
  ASSERT_EQ(rows.size(), 4u);
  for (const session::MrRow& row : rows) {
    if (row.window == 0) {
      EXPECT_EQ(row.windows, row.handle == mr.handle ? 1u : 0u);
    } else if (row.handle == bound.handle) {
      EXPECT_EQ(row.window, 2u);
      EXPECT_EQ(row.bound_to, mr.handle);
      EXPECT_EQ(row.address, 4096u);
      EXPECT_EQ(row.length, 8u);
      EXPECT_EQ(row.access, verbs::kAccessRemoteRead);
      EXPECT_EQ(row.window_qpn, 9u);
    } else {
      EXPECT_EQ(row.handle, unbound.handle);
      EXPECT_EQ(row.window, 1u);
      EXPECT_EQ(row.bound_to, 0u);
      EXPECT_EQ(row.length, 0u);
    }
  }
}

TEST_F(SessionWindows, RegionWithoutTheRight_IsBoundToByNobody) {
  const auto mr = client->RegMr(pd, 4096, 64, verbs::kAccessLocalWrite);
  EXPECT_FALSE(Bind(Alloc(pd, 2), mr));
}

TEST_F(SessionWindows, EndOfContextOrSession_TakesBoundWindowsAlong) {
  const auto bind = [this] {
    const auto mr = client->RegMr(pd, 4096, 64, kBindable);
    EXPECT_TRUE(Bind(Alloc(pd, 1), mr));
    EXPECT_EQ(used(), 2u);
  };
  bind();
  client->Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
  EXPECT_EQ(client->error(), 0);
  EXPECT_TRUE(host.workers[0]->sessions.begin()->second.windows.empty());
  EXPECT_EQ(used(), 0u);
  Open();
  bind();
  client.reset();
  host.Settle();
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(host.BrokenRules(), std::vector<std::string>());
}

TEST_F(SessionWindows, Device_SaysHowMany) {
  auto query = TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE);
  const auto reply = client->Call<rocegw_device_reply>(query);
  EXPECT_NE(reply.max_mw, 0u);
  EXPECT_EQ(reply.max_mw, reply.max_mr);
}

}  // namespace
}  // namespace rocegw::testing::window
