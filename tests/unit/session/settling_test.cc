// SPDX-License-Identifier: Apache-2.0
// Programs that would keep a gateway from being replaced: slow requests, silence, unread answers,
// and attaches about which the agent has not decided.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using Unsettling = session::AttachServer::Unsettling;

class SettlingTest : public ::testing::Test {
 protected:
  struct Program {
    std::unique_ptr<TestClient> client;
    uint32_t pd = 0;
    uint32_t cq = 0;
  };
  Program Attached() {
    Program program{std::make_unique<TestClient>(host_)};
    EXPECT_TRUE(program.client->Hello());
    const uint32_t context = program.client->OpenContext();
    program.pd = program.client->AllocPd(context);
    program.cq = program.client->CreateCq(context, 64).handle;
    return program;
  }
  static rocegw_reg_mr RegionOf(const Program& program) {
    auto reg = TestClient::Request<rocegw_reg_mr>(ROCEGW_MSG_REG_MR);
    reg.pd = program.pd;
    reg.address = reg.iova = 0x10000;
    reg.length = 4096;
    reg.access = 7;
    return reg;
  }
  // Sends a request that lasts until the workers answer.
  void BeginSlowRequest(Program& program) {
    ASSERT_TRUE(program.client->Send(RegionOf(program)));
    for (int i = 0; i < 4; ++i) host_.RunControl();
    ASSERT_NE(attach().Unsettled(), "");
  }
  session::AttachServer& attach() { return host_.server->attach(); }

  SessionHost host_{1};
};

TEST_F(SettlingTest, NothingInProgress_NothingToWaitFor) {
  const Program program = Attached();
  attach().BeginSettling();
  EXPECT_FALSE(attach().settling());
  EXPECT_EQ(attach().Unsettled(), "");
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAll), "");
  EXPECT_EQ(host_.server->session_count(), 1u);
}

TEST_F(SettlingTest, SlowRequest_IsWaitedFor_AndItsProgramBeginsNoOther) {
  Program slow = Attached();
  Program other = Attached();
  BeginSlowRequest(slow);
  attach().BeginSettling();
  EXPECT_TRUE(attach().settling());
  host_.Settle();
  EXPECT_FALSE(attach().settling());
  ASSERT_TRUE(slow.client->Receive().has_value());
  // Another program is served meanwhile.
  EXPECT_NE(other.client->CreateQp(other.pd, other.cq).handle, 0u);
  ASSERT_TRUE(slow.client->Send(RegionOf(slow)));
  host_.Settle();
  EXPECT_FALSE(slow.client->Receive().has_value());
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAtBegin), "");
  attach().EndSettling();
  host_.Settle();
  EXPECT_TRUE(slow.client->Receive().has_value());
  EXPECT_EQ(host_.server->session_count(), 2u);
}

TEST_F(SettlingTest, RequestThatLasts_PreventsOneTakeOver_AndThenEndsItsProgram) {
  Program stuck = Attached();
  const Program other = Attached();
  BeginSlowRequest(stuck);
  attach().BeginSettling();
  const std::string prevents = attach().EndUnsettled(Unsettling::kAtBegin);
  EXPECT_NE(prevents.find("has a request in progress"), std::string::npos) << prevents;
  EXPECT_NE(prevents.find(session::kDefaultPool), std::string::npos) << prevents;
  attach().EndSettling();
  // The next one.
  attach().BeginSettling();
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAtBegin), "");
  host_.Settle();
  EXPECT_EQ(attach().Unsettled(), "");
  EXPECT_EQ(host_.server->session_count(), 1u);
  EXPECT_TRUE(stuck.client->closed());
  EXPECT_TRUE(host_.Logged("the gateway is replaced, and the program has a request in progress"));
}

TEST_F(SettlingTest, RequestOfAProgramThatAttachedMeanwhile_PreventsNothing) {
  attach().BeginSettling();
  Program late = Attached();
  BeginSlowRequest(late);
  EXPECT_FALSE(attach().settling());
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAll), "");
  host_.Settle();
  EXPECT_EQ(host_.server->session_count(), 0u);
}

TEST_F(SettlingTest, ProgramThatDoesNotGreet_IsClosed) {
  TestClient silent(host_);
  host_.Settle();
  ASSERT_NE(attach().Unsettled(), "");
  attach().BeginSettling();
  EXPECT_TRUE(attach().settling());
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAtBegin), "");
  host_.Settle();
  EXPECT_EQ(attach().Unsettled(), "");
  EXPECT_EQ(host_.server->session_count(), 0u);
}

TEST_F(SettlingTest, ProgramThatDoesNotReadItsAnswers_IsClosed) {
  Program deaf = Attached();
  for (int i = 0; i < 100000 && attach().Unsettled().empty(); ++i) {
    (void)deaf.client->Send(TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE));
    host_.RunControl();
  }
  ASSERT_NE(attach().Unsettled().find("does not read its answers"), std::string::npos)
      << attach().Unsettled();
  attach().BeginSettling();
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAtBegin), "");
  host_.Settle();
  EXPECT_EQ(attach().Unsettled(), "");
  EXPECT_EQ(host_.server->session_count(), 0u);
}

TEST_F(SettlingTest, AttachThatWaitsForTheAgent_MayTryAgain) {
  constexpr char kPool[] = "tenants/t/pools/p";
  tenant::TenantSettings tenant;
  tenant.name = "tenants/t";
  host_.server->SetTenant(tenant);
  tenant::PoolSettings settings;
  settings.name = kPool;
  settings.identity_required = true;
  host_.server->SetPool(settings, {});
  TestClient client(host_, kPool);
  auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  client.Send(hello);
  host_.Settle();
  attach().BeginSettling();
  EXPECT_FALSE(attach().settling()) << "others are served, so it may go on waiting";
  EXPECT_EQ(attach().EndUnsettled(Unsettling::kAtBegin), "");
  EXPECT_NE(attach().Unsettled(), "");
  attach().gate().RefuseAll(EAGAIN, "the gateway is being replaced");
  host_.Settle();
  EXPECT_EQ(attach().Unsettled(), "");
  const auto answer = client.Receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->header().error, EAGAIN);
}

}  // namespace
}  // namespace rocegw::testing
