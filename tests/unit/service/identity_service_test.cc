// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "gateway/service/grpc_server.h"
#include "rocegw/gateway/v1/identity.grpc.pb.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

class FakeAttaches : public AttachSource {
 public:
  void ListHeld(uint64_t after, Duration wait,
                std::function<void(std::vector<session::HeldRow>)> done) override {
    asked_after = after;
    asked_wait = wait;
    session::HeldRow row;
    row.id = 9;
    row.pool = "tenants/red/pools/p";
    row.socket = "/run/rocegw/a/0/attach.sock";
    row.pid = 42;
    row.uid = 1000;
    row.gid = 100;
    row.start_time = 77;
    row.cgroup = "/a.slice";
    row.comm = "program";
    done({row});
  }
  void AnswerHeld(uint64_t id, bool allowed, const std::string& reason,
                  const tenant::SlotLimits& limits, std::function<void(bool)> done) override {
    answered_allowed = allowed;
    answered_limits = limits;
    answered_reason = reason;
    done(id == 9);
  }
  void ClearSocket(const std::string& path, bool expect_program,
                   std::function<void(uint32_t)> done) override {
    cleared = path;
    expected = expect_program;
    done(3);
  }
  uint64_t asked_after = 0;
  Duration asked_wait;
  bool answered_allowed = false;
  std::string answered_reason;
  tenant::SlotLimits answered_limits;
  std::string cleared;
  bool expected = false;
};

class IdentityServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start({directory_.File("grpc.sock")}).ok());
    stub_ = gateway::v1::IdentityService::NewStub(grpc::CreateChannel(
        "unix:" + directory_.File("grpc.sock"), grpc::InsecureChannelCredentials()));
  }
  static std::unique_ptr<grpc::ClientContext> Within(std::chrono::seconds time) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + time);
    return context;
  }

  TestDirectory directory_;
  GatewayIdentity identity_ = TestIdentity();
  Readiness readiness_;
  FakeSource source_;
  FakeAttaches attaches_;
  GrpcServer server_{identity_, readiness_, source_, nullptr, &attaches_};
  std::unique_ptr<gateway::v1::IdentityService::Stub> stub_;
};

TEST_F(IdentityServiceTest, List_TellsWhoItIs) {
  gateway::v1::ListHeldAttachesRequest request;
  request.set_after(8);
  request.mutable_wait()->set_seconds(10);
  gateway::v1::ListHeldAttachesResponse response;
  const auto context = Within(std::chrono::seconds(40));
  ASSERT_TRUE(stub_->ListHeldAttaches(context.get(), request, &response).ok());
  EXPECT_EQ(attaches_.asked_after, 8u);
  EXPECT_EQ(attaches_.asked_wait, Seconds(10));
  ASSERT_EQ(response.attaches_size(), 1);
  EXPECT_EQ(response.attaches(0).ShortDebugString(),
            "id: 9 pool: \"tenants/red/pools/p\" socket: \"/run/rocegw/a/0/attach.sock\" pid: 42 "
            "uid: 1000 gid: 100 start_time: 77 cgroup: \"/a.slice\" comm: \"program\"");
}

TEST_F(IdentityServiceTest, Wait_EndsBeforeTheCallAndWithinBounds) {
  gateway::v1::ListHeldAttachesRequest request;
  request.mutable_wait()->set_seconds(1000000);
  gateway::v1::ListHeldAttachesResponse response;
  auto context = Within(std::chrono::seconds(55));
  ASSERT_TRUE(stub_->ListHeldAttaches(context.get(), request, &response).ok());
  EXPECT_EQ(attaches_.asked_wait, Seconds(30));
  context = Within(std::chrono::seconds(5));
  ASSERT_TRUE(stub_->ListHeldAttaches(context.get(), request, &response).ok());
  EXPECT_LT(attaches_.asked_wait, Seconds(5));
  request.mutable_wait()->set_seconds(-3);
  context = Within(std::chrono::seconds(5));
  ASSERT_TRUE(stub_->ListHeldAttaches(context.get(), request, &response).ok());
  EXPECT_EQ(attaches_.asked_wait, Duration{});
  context = Within(std::chrono::seconds(600));
  EXPECT_EQ(stub_->ListHeldAttaches(context.get(), request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT)
      << "as every call here";
}

TEST_F(IdentityServiceTest, Answer_IsPassedOnAsOneLine) {
  gateway::v1::AnswerAttachRequest request;
  gateway::v1::AnswerAttachResponse response;
  request.set_id(9);
  request.set_allowed(true);
  request.set_reason("two\nlines");
  auto context = Within(std::chrono::seconds(20));
  EXPECT_TRUE(stub_->AnswerAttach(context.get(), request, &response).ok());
  EXPECT_TRUE(attaches_.answered_allowed);
  EXPECT_EQ(attaches_.answered_reason, "two lines");
  EXPECT_FALSE(attaches_.answered_limits.any());
  request.mutable_limits()->set_qps(64);
  request.mutable_limits()->set_bytes_per_second(1000);
  context = Within(std::chrono::seconds(20));
  EXPECT_TRUE(stub_->AnswerAttach(context.get(), request, &response).ok());
  EXPECT_EQ(attaches_.answered_limits, (tenant::SlotLimits{64, 1000}));
  request.set_id(8);
  context = Within(std::chrono::seconds(20));
  EXPECT_EQ(stub_->AnswerAttach(context.get(), request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(IdentityServiceTest, Clear_TellsWhatIsLeft) {
  gateway::v1::ClearSocketRequest request;
  gateway::v1::ClearSocketResponse response;
  request.set_socket("/run/rocegw/a/0/0/attach.sock");
  auto context = Within(std::chrono::seconds(20));
  EXPECT_TRUE(stub_->ClearSocket(context.get(), request, &response).ok());
  EXPECT_EQ(attaches_.cleared, request.socket());
  EXPECT_FALSE(attaches_.expected);
  EXPECT_EQ(response.remaining(), 3u);
  request.set_expect_program(true);
  context = Within(std::chrono::seconds(20));
  EXPECT_TRUE(stub_->ClearSocket(context.get(), request, &response).ok());
  EXPECT_TRUE(attaches_.expected);
}

}  // namespace
}  // namespace rocegw::service
