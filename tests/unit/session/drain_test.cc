// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

class DrainTest : public ::testing::Test {
 protected:
  DrainTest() {
    EXPECT_TRUE(client.Hello());
    context = client.OpenContext();
    pd = client.AllocPd(context);
    cq = client.CreateCq(context).handle;
  }
  session::DrainRow Row() {
    session::DrainRow row;
    host.server->Snapshot({}, [&](const session::StateSnapshot& state) { row = state.drain; });
    host.Settle();
    return row;
  }
  void Order(Duration deadline, session::OnDeadline action) {
    host.server->OrderDrain({true, deadline, action});
  }
  // Returns 0, or the errno of an attach.
  int AttachError() {
    TestClient other(host);
    const auto answer = other.Receive();
    return answer ? answer->header().error : 0;
  }

  SessionHost host;
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
  uint32_t cq = 0;
};

TEST_F(DrainTest, NothingNewBegins_WhatIsThereGoesOn) {
  const auto qp = client.CreateQp(pd, cq);
  host.server->OrderDrainLocally(true);
  EXPECT_EQ(AttachError(), ESHUTDOWN);
  client.CreateQp(pd, cq);
  EXPECT_EQ(client.error(), ESHUTDOWN);
  EXPECT_NE(client.RegMr(pd, 4096, 64).handle, 0u);
  EXPECT_EQ(host.server->services().events.Rows().at(0).reason, "DRAINING");
  session::DrainRow row = Row();
  EXPECT_TRUE(row.active);
  EXPECT_GT(row.start_ns, 0);
  EXPECT_FALSE(row.empty);
  EXPECT_EQ(row.sessions, 1u);
  EXPECT_EQ(row.qps, 1u);
  ASSERT_EQ(row.holders.size(), 1u);
  EXPECT_NE(row.holders[0].find("1 queue pairs"), std::string::npos);
  client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
  EXPECT_TRUE(Row().empty);
}

TEST_F(DrainTest, TakenBack_AllIsAsBefore) {
  host.server->OrderDrainLocally(true);
  host.server->OrderDrainLocally(false);
  EXPECT_EQ(AttachError(), 0);
  EXPECT_NE(client.CreateQp(pd, cq).handle, 0u);
  EXPECT_FALSE(Row().active);
  EXPECT_EQ(Row().start_ns, 0);
}

TEST_F(DrainTest, EitherOrderIsEnough) {
  Order({}, session::OnDeadline::kKeep);
  host.server->OrderDrainLocally(true);
  host.server->OrderDrainLocally(false);
  EXPECT_TRUE(Row().active);
  host.server->OrderDrain({});
  EXPECT_FALSE(Row().active);
}

TEST_F(DrainTest, DeadlineAbort_SessionsEnd) {
  client.CreateQp(pd, cq);
  Order(Nanoseconds(1), session::OnDeadline::kAbort);
  host.Settle();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(Row().empty);
}

TEST_F(DrainTest, DeadlineDisconnect_QueuePairsFailAndTheSessionStays) {
  const auto qp = client.CreateQp(pd, cq);
  Order(Nanoseconds(1), session::OnDeadline::kDisconnect);
  host.Settle();
  bool failed = false;
  for (const auto& worker : host.workers) {
    for (const auto& [id, session] : worker->sessions) {
      for (const auto& [qpn, linked] : session.qps)
        failed |= qpn == qp.qpn && linked.attributes.state == verbs::QpState::kError;
    }
  }
  EXPECT_TRUE(failed);
  EXPECT_FALSE(client.closed());
}

TEST_F(DrainTest, DeadlineKeep_NothingHappens) {
  client.CreateQp(pd, cq);
  Order(Nanoseconds(1), session::OnDeadline::kKeep);
  host.Settle();
  EXPECT_FALSE(client.closed());
  EXPECT_EQ(Row().qps, 1u);
}

}  // namespace
}  // namespace rocegw::testing
