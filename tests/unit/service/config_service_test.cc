// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "gateway/service/grpc_server.h"
#include "rocegw/gateway/v1/config.grpc.pb.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

class FakeConfig : public ConfigSource {
 public:
  void Apply(const types::v1::Push& push,
             std::function<void(bool, types::v1::PushReport)> done) override {
    types::v1::PushReport report;
    report.set_nonce(push.nonce());
    report.set_status(types::v1::NEED_FULL);
    ++applied;
    done(running, report);
  }
  void Describe(std::function<void(bool, gateway::v1::GetConfigResponse)> done) override {
    gateway::v1::GetConfigResponse config;
    config.set_source("static");
    config.add_objects()->set_name("tenants/red");
    done(running, config);
  }
  void Drain(bool drain, std::function<void(bool, session::DrainRow)> done) override {
    session::DrainRow row;
    row.active = drain;
    row.qps = 3;
    row.outstanding = 9;
    row.holders = {"session 1"};
    done(running, row);
  }
  bool running = true;
  int applied = 0;
};

class ConfigServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.Start({directory_.File("grpc.sock")}).ok());
    stub_ = gateway::v1::ConfigService::NewStub(grpc::CreateChannel(
        "unix:" + directory_.File("grpc.sock"), grpc::InsecureChannelCredentials()));
  }
  static std::unique_ptr<grpc::ClientContext> Soon() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return context;
  }
  static gateway::v1::ApplyRequest Request(const std::string& store, int64_t revision) {
    gateway::v1::ApplyRequest request;
    request.mutable_push()->set_nonce("n");
    request.mutable_push()->set_store_uuid(store);
    request.mutable_push()->set_revision(revision);
    return request;
  }

  TestDirectory directory_;
  GatewayIdentity identity_ = TestIdentity();
  Readiness readiness_;
  FakeSource source_;
  FakeConfig config_;
  GrpcServer server_{identity_, readiness_, source_, &config_};
  std::unique_ptr<gateway::v1::ConfigService::Stub> stub_;
};

TEST_F(ConfigServiceTest, Apply_AnswersWithTheReport) {
  gateway::v1::ApplyResponse response;
  ASSERT_TRUE(stub_->Apply(Soon().get(), Request("store", 1), &response).ok());
  EXPECT_EQ(response.report().nonce(), "n");
  EXPECT_EQ(response.report().status(), types::v1::NEED_FULL);
}

TEST_F(ConfigServiceTest, PushFromNowhere_IsRefused) {
  gateway::v1::ApplyResponse response;
  for (const auto& request : {Request("", 1), Request("static", 1), Request("store", 0)}) {
    EXPECT_EQ(stub_->Apply(Soon().get(), request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  grpc::ClientContext forever;
  EXPECT_EQ(stub_->Apply(&forever, Request("store", 1), &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(config_.applied, 0);
}

TEST_F(ConfigServiceTest, GetConfig_TellsWhatRuns) {
  gateway::v1::GetConfigResponse response;
  ASSERT_TRUE(stub_->GetConfig(Soon().get(), {}, &response).ok());
  EXPECT_EQ(response.source(), "static");
  EXPECT_EQ(response.objects(0).name(), "tenants/red");
}

TEST_F(ConfigServiceTest, Drain_TellsHowItStands) {
  gateway::v1::DrainRequest request;
  request.set_drain(true);
  gateway::v1::DrainResponse response;
  ASSERT_TRUE(stub_->Drain(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.admin_state(), types::v1::DRAINING);
  EXPECT_EQ(response.progress().qps(), 3u);
  EXPECT_EQ(response.progress().outstanding_requests(), 9u);
  EXPECT_EQ(response.progress().holders(0), "session 1");
  request.set_drain(false);
  ASSERT_TRUE(stub_->Drain(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.admin_state(), types::v1::ACTIVE);
  EXPECT_FALSE(response.has_progress());
}

TEST_F(ConfigServiceTest, Stopping_IsUnavailable) {
  config_.running = false;
  gateway::v1::GetConfigResponse response;
  EXPECT_EQ(stub_->GetConfig(Soon().get(), {}, &response).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace rocegw::service
