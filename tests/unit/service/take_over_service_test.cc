// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>

#include "gateway/service/grpc_server.h"
#include "rocegw/gateway/v1/take_over.grpc.pb.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

class FakeTakeOvers : public TakeOverSource {
 public:
  void TakeOver(uint64_t take_overs,
                std::function<void(const StatusOr<TakeOverOutcome>&)> done) override {
    asked = take_overs;
    done(outcome);
  }
  uint64_t asked = 0;
  StatusOr<TakeOverOutcome> outcome = TakeOverOutcome();
};

class TakeOverServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start({directory_.File("grpc.sock")}).ok());
    stub_ = gateway::v1::TakeOverService::NewStub(grpc::CreateChannel(
        "unix:" + directory_.File("grpc.sock"), grpc::InsecureChannelCredentials()));
  }
  grpc::Status TakeOver(int seconds = 20) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
    gateway::v1::TakeOverRequest request;
    request.set_take_overs(7);
    response_.Clear();
    return stub_->TakeOver(&context, request, &response_);
  }

  TestDirectory directory_;
  GatewayIdentity identity_ = TestIdentity();
  Readiness readiness_;
  FakeSource source_;
  FakeTakeOvers take_overs_;
  GrpcServer server_{identity_, readiness_, source_, nullptr,
                     nullptr,   nullptr,    nullptr, &take_overs_};
  std::unique_ptr<gateway::v1::TakeOverService::Stub> stub_;
  gateway::v1::TakeOverResponse response_;
};

TEST_F(TakeOverServiceTest, ASuccess_SaysHowLongItTookAndWhatWentOver) {
  TakeOverOutcome outcome;
  outcome.blackout = Milliseconds(1234);
  outcome.handed_over.sessions = 3;
  outcome.handed_over.qps = 12;
  take_overs_.outcome = outcome;
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_EQ(take_overs_.asked, 7U);
  EXPECT_EQ(response_.refusal(), "");
  EXPECT_EQ(response_.blackout().seconds(), 1);
  EXPECT_EQ(response_.blackout().nanos(), 234'000'000);
  EXPECT_EQ(response_.handed_over().sessions(), 3U);
  EXPECT_EQ(response_.handed_over().qps(), 12U);
}

TEST_F(TakeOverServiceTest, ARefusal_HasReasonAndText) {
  TakeOverOutcome outcome;
  outcome.refusal = "sessions";
  outcome.text = "an attached program cannot be handed over: XRC domains";
  take_overs_.outcome = outcome;
  ASSERT_TRUE(TakeOver().ok());
  EXPECT_EQ(response_.refusal(), "sessions");
  EXPECT_EQ(response_.text(), outcome.text);
  EXPECT_FALSE(response_.has_handed_over());
}

TEST_F(TakeOverServiceTest, AnotherNumberOfTakeOvers_IsAFailedPrecondition) {
  take_overs_.outcome = Status(ESTALE, "the gateway has had 8 take-overs, not 7");
  const grpc::Status status = TakeOver();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(status.error_message(), "the gateway has had 8 take-overs, not 7");
}

TEST_F(TakeOverServiceTest, AGatewayThatStops_IsUnavailable) {
  take_overs_.outcome = Status(ESHUTDOWN, "the gateway is stopping");
  EXPECT_EQ(TakeOver().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(TakeOverServiceTest, ALongDeadline_IsRefused) {
  EXPECT_EQ(TakeOver(3600).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace rocegw::service
