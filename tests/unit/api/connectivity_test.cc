// SPDX-License-Identifier: Apache-2.0
// TestConnectivity over gRPC, with two scripted agents.
#include "controlplane/api/questions/connectivity_test.h"

#include <google/protobuf/util/time_util.h>

#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <semaphore>

#include "controlplane/api/questions/probe_pair.h"
#include "tests/unit/api/gateways_world.h"

namespace rocegw::testing::gateways {
namespace {

using admin::v1::TestConnectivityRequest;
using admin::v1::TestConnectivityResponse;
using fleet::v1::ProbeRequest;
using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;
using google::protobuf::util::TimeUtil;

// Agent that records questions; the test answers.
class ProbingAgent final : public sync::TunnelStream {
 public:
  ProbingAgent(sync::TunnelHub& tunnels, std::string gateway)
      : tunnels_(tunnels), gateway_(std::move(gateway)) {}

  void Send(const TunnelQuestion& question) override {
    const std::lock_guard lock(mutex_);
    if (question.has_probe()) asked_[question.id()] = question.probe();
    if (question.has_cancel()) asked_.erase(question.id());
    changed_.notify_all();
  }
  void Close(sync::StreamEnd) override {}

  // Waits for the only probe.
  ProbeRequest Await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !asked_.empty(); });
    return asked_.begin()->second;
  }
  void AwaitNone() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_.empty(); });
  }
  void Answer(const fleet::v1::ProbeReport& report, bool more) {
    TunnelAnswer answer;
    *answer.mutable_probe() = report;
    answer.set_more(more);
    Answer(answer);
  }
  void Answer(TunnelAnswer answer) {
    {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(asked_.empty());
      answer.set_id(asked_.begin()->first);
      if (!answer.more()) asked_.erase(asked_.begin());
    }
    tunnels_.OnAnswer(gateway_, stream, answer);
  }

  sync::TunnelHub::StreamId stream = 0;

 private:
  sync::TunnelHub& tunnels_;
  const std::string gateway_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, ProbeRequest> asked_;
};

class ConnectivityTest : public GatewaysWorld {
 protected:
  ConnectivityTest() {
    Create("gateways/h");
    g_ = Attach("gateways/g");
    h_ = Attach("gateways/h");
    request_.set_from("gateways/g");
    request_.set_to("gateways/h");
  }
  ~ConnectivityTest() override { Stop(); }

  std::shared_ptr<ProbingAgent> Attach(const std::string& gateway) {
    auto agent = std::make_shared<ProbingAgent>(tunnels_, gateway);
    agent->stream = tunnels_.Attach(gateway, agent);
    return agent;
  }
  void Begin(std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
    context_ = Context(deadline);
    call_ = std::async(std::launch::async, [this] {
      return gateways_->TestConnectivity(context_.get(), request_, &response_);
    });
  }
  static fleet::v1::ProbeReport Listening() {
    fleet::v1::ProbeReport report;
    report.set_address("192.0.2.7");
    report.set_port(40000);
    return report;
  }
  static fleet::v1::ProbeReport Fault(types::v1::ConnectivityFault fault) {
    fleet::v1::ProbeReport report;
    report.set_fault(fault);
    report.set_message("so it is");
    return report;
  }
  // Expects that the call succeeds with this fault.
  void ExpectFault(types::v1::ConnectivityFault fault, const std::string& at) {
    const grpc::Status status = call_.get();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response_.from(), "gateways/g");
    EXPECT_EQ(response_.to(), "gateways/h");
    EXPECT_FALSE(response_.has_connectivity());
    EXPECT_EQ(response_.fault(), fault);
    EXPECT_EQ(response_.noticed_at(), at);
    EXPECT_NE(response_.message(), "");
    EXPECT_NE(response_.remedy(), "");
  }

  TestConnectivityRequest request_;
  TestConnectivityResponse response_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::future<grpc::Status> call_;
  std::shared_ptr<ProbingAgent> g_;
  std::shared_ptr<ProbingAgent> h_;
};

TEST_F(ConnectivityTest, OneWaits_TheOtherConnects_BothEnd) {
  request_.set_bulk_bytes(1000);
  Begin();
  const ProbeRequest waits = h_->Await();
  EXPECT_EQ(waits.pool(), "tenants/default/pools/default");
  EXPECT_EQ(waits.address(), "");
  h_->Answer(Listening(), true);
  const ProbeRequest connects = g_->Await();
  EXPECT_EQ(connects.pool(), "tenants/default/pools/default");
  EXPECT_EQ(connects.address(), "192.0.2.7");
  EXPECT_EQ(connects.port(), 40000u);
  EXPECT_EQ(connects.message_bytes(), 64u);
  EXPECT_EQ(connects.round_trips(), 1000u);
  EXPECT_EQ(connects.bulk_bytes(), 1000u);
  const auto limit = [](const ProbeRequest& probe) {
    return TimeUtil::DurationToMilliseconds(probe.time_limit());
  };
  EXPECT_GT(limit(waits), limit(connects)) << "who connects says what it waited for";
  EXPECT_LT(limit(waits), 20000) << "both before the call";
  fleet::v1::ProbeReport report;
  report.mutable_connectivity()->set_round_trip_median_ns(30000);
  report.mutable_connectivity()->set_transport("channel");
  g_->Answer(report, false);
  const grpc::Status status = call_.get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response_.address(), "192.0.2.7");
  EXPECT_EQ(response_.connectivity().round_trip_median_ns(), 30000u);
  EXPECT_EQ(response_.connectivity().transport(), "channel");
  EXPECT_EQ(response_.fault(), types::v1::CONNECTIVITY_FAULT_UNSPECIFIED);
  h_->AwaitNone();
  const auto audited = Audited("TestConnectivity");
  ASSERT_EQ(audited.size(), 1u);
  EXPECT_EQ(audited[0].first, "gateways/g");
  EXPECT_NE(audited[0].second.find("gateways/h"), std::string::npos) << audited[0].second;
}

TEST_F(ConnectivityTest, FaultOfEither_IsTheAnswer_AndEndsTheOther) {
  Begin();
  h_->Await();
  h_->Answer(Fault(types::v1::ATTACH_REFUSED), false);
  ExpectFault(types::v1::ATTACH_REFUSED, "gateways/h");
  response_.Clear();
  Begin();
  h_->Await();
  h_->Answer(Listening(), true);
  g_->Await();
  g_->Answer(Fault(types::v1::TIMED_OUT), false);
  ExpectFault(types::v1::TIMED_OUT, "gateways/g");
  EXPECT_EQ(response_.address(), "192.0.2.7");
  h_->AwaitNone();
  response_.Clear();
  Begin();
  h_->Await();
  h_->Answer(Listening(), true);
  g_->Await();
  h_->Answer(Fault(types::v1::CORRUPTED), false);
  ExpectFault(types::v1::CORRUPTED, "gateways/h");
  g_->AwaitNone();
}

TEST_F(ConnectivityTest, AgentThatIsAway_OrTooOld_IsARowToo) {
  tunnels_.Detach("gateways/h", h_->stream);
  Begin();
  ExpectFault(types::v1::AGENT_AWAY, "gateways/h");
  h_ = Attach("gateways/h");
  response_.Clear();
  Begin();
  h_->Await();
  TunnelAnswer unknown;
  unknown.set_code(grpc::StatusCode::UNIMPLEMENTED);
  unknown.set_message("this agent is older than the question");
  h_->Answer(unknown);
  ExpectFault(types::v1::NO_PROBE, "gateways/h");
  response_.Clear();
  Begin();
  h_->Await();
  h_->Answer(Listening(), true);
  g_->Await();
  tunnels_.Detach("gateways/g", g_->stream);
  ExpectFault(types::v1::AGENT_AWAY, "gateways/g");
  h_->AwaitNone();
}

TEST_F(ConnectivityTest, CallerGoes_NothingIsLeft) {
  Begin();
  h_->Await();
  h_->Answer(Listening(), true);
  g_->Await();
  context_->TryCancel();
  EXPECT_EQ(call_.get().error_code(), grpc::StatusCode::CANCELLED);
  g_->AwaitNone();
  h_->AwaitNone();
}

TEST_F(ConnectivityTest, MoreThanMayRunAtATime_Refused) {
  constexpr uint32_t kTooMany = 10;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::future<grpc::Status>> calls;
  std::counting_semaphore<> refused(0);
  for (uint32_t i = 0; i < api::ConnectivityTests::kMost + kTooMany; ++i) {
    contexts.push_back(Context());
    calls.push_back(std::async(std::launch::async, [&, context = contexts.back().get()] {
      TestConnectivityResponse response;
      grpc::Status status = gateways_->TestConnectivity(context, request_, &response);
      if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) refused.release();
      return status;
    }));
  }
  // None of the others ends by itself.
  for (uint32_t i = 0; i < kTooMany; ++i) refused.acquire();
  for (const auto& context : contexts) context->TryCancel();
  uint32_t cancelled = 0;
  for (auto& call : calls) cancelled += call.get().error_code() == grpc::StatusCode::CANCELLED;
  EXPECT_EQ(cancelled, api::ConnectivityTests::kMost);
  grpc::Status status;
  do {
    TestConnectivityResponse response;
    status = gateways_->TestConnectivity(Context(std::chrono::milliseconds(50)).get(), request_,
                                         &response);
  } while (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ConnectivityTest, WhatIsAsked_IsChecked) {
  request_.set_to("gateways/none");
  Begin();
  EXPECT_EQ(call_.get().error_code(), grpc::StatusCode::NOT_FOUND);
  request_.set_to("gateways/h");
  request_.set_message_bytes(65537);
  Begin();
  EXPECT_EQ(call_.get().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request_.set_message_bytes(1);
  request_.set_pool("tenants/a");
  Begin();
  EXPECT_EQ(call_.get().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST(RemedyOf, EveryFault_HasOne) {
  const auto* const faults = types::v1::ConnectivityFault_descriptor();
  for (int i = 1; i < faults->value_count(); ++i) {
    const auto fault = static_cast<types::v1::ConnectivityFault>(faults->value(i)->number());
    EXPECT_NE(api::RemedyOf(fault, "a", "b"), "") << faults->value(i)->name();
  }
}

}  // namespace
}  // namespace rocegw::testing::gateways
