// SPDX-License-Identifier: Apache-2.0
// Replacement of the gateway by the agent: success, refusal, a lost answer, repetitions, a gateway
// that restarts, cannot be asked or does not come back.
#include "agent/upgrade/gateway_replacement.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

namespace rocegw::agent {
namespace {

using fleet::v1::ReplacementReport;
using fleet::v1::TunnelAnswer;

// Gateway whose take-overs end as a test says.
class ScriptedGateway final : public GatewayPort {
 public:
  explicit ScriptedGateway(ControlLoop& loop) : loop_(loop) { Start(); }

  enum class End {
    kReplaced,
    kRefused,
    kBusyOnce,
    kAnswerLost,
    kRestarts,
    kUnknownCall,
    kNothing,
  };

  void Ask(const fleet::v1::TunnelQuestion& question,
           std::function<void(TunnelAnswer)> done) override {
    ASSERT_TRUE(question.has_get_status());
    TunnelAnswer answer;
    if (away) {
      answer.set_code(grpc::StatusCode::UNAVAILABLE);
    } else {
      *answer.mutable_status() = status;
    }
    (void)loop_.Post([answer, done = std::move(done)] { done(answer); });
  }
  void TakeOver(uint64_t take_overs, Duration,
                std::function<void(const TakeOverAnswer&)> done) override {
    ++orders;
    TakeOverAnswer answer;
    if (take_overs != status.take_overs().count()) {
      answer.code = grpc::StatusCode::FAILED_PRECONDITION;
    } else {
      Carry(answer);
    }
    (void)loop_.Post([answer, done = std::move(done)] { done(answer); });
  }
  // A process without a predecessor takes the place of one that crashed.
  void Restart() {
    status.clear_take_overs();
    Start();
  }
  void Replace() {
    status.mutable_take_overs()->set_count(status.take_overs().count() + 1);
    Start();
  }

  void Probe(std::function<void(StatusOr<GatewayProbe>)>) override {}
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)>) override {}
  void Apply(const types::v1::Push&,
             std::function<void(StatusOr<types::v1::PushReport>)>) override {}
  void ListHeldAttaches(
      uint64_t, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)>) override {}
  void AnswerAttach(uint64_t, bool, const std::string&, const gateway::v1::SlotLimits&) override {}

  End end = End::kReplaced;
  bool away = false;
  int orders = 0;
  types::v1::GatewayStatus status;

 private:
  void Start() {
    status.set_ready(true);
    status.mutable_take_overs();
    status.mutable_start_time()->set_seconds(++starts_);
    status.set_version("0." + std::to_string(starts_));
  }
  void Carry(TakeOverAnswer& answer) {
    switch (std::exchange(end, end == End::kBusyOnce ? End::kReplaced : end)) {
      case End::kReplaced:
        answer.response.mutable_handed_over()->set_sessions(3);
        return Replace();
      case End::kRefused:
        answer.response.set_refusal("sessions");
        answer.response.set_text("XRC domains");
        return;
      case End::kBusyOnce:
        answer.response.set_refusal("busy");
        return;
      case End::kAnswerLost:
        answer.code = grpc::StatusCode::UNAVAILABLE;
        return Replace();
      case End::kRestarts:
        answer.code = grpc::StatusCode::UNAVAILABLE;
        return Start();
      case End::kUnknownCall:
        answer.code = grpc::StatusCode::UNIMPLEMENTED;
        return;
      case End::kNothing:
        answer.code = grpc::StatusCode::DEADLINE_EXCEEDED;
        return;
    }
  }

  ControlLoop& loop_;
  int64_t starts_ = 0;
};

class GatewayReplacementTest : public ::testing::Test {
 protected:
  GatewayReplacementTest() { EXPECT_TRUE(loop_.Open().ok()); }

  size_t Start(uint64_t take_overs, int64_t seconds = 30) {
    fleet::v1::ReplaceGateway question;
    question.set_take_overs(take_overs);
    question.mutable_time_limit()->set_seconds(seconds);
    const size_t index = answers_.size();
    answers_.emplace_back();
    replacement_.Start(question, [this, index](TunnelAnswer answer) { answers_[index] = answer; });
    return index;
  }
  const TunnelAnswer& Await(size_t index) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!answers_[index].has_value() && std::chrono::steady_clock::now() < end)
      loop_.RunOnce(Milliseconds(50));
    EXPECT_TRUE(answers_[index].has_value());
    if (!answers_[index].has_value()) answers_[index].emplace();
    return *answers_[index];
  }
  ReplacementReport Replace(uint64_t take_overs, int64_t seconds = 30) {
    return Await(Start(take_overs, seconds)).replacement();
  }

  ControlLoop loop_;
  ScriptedGateway gateway_{loop_};
  GatewayReplacement replacement_{loop_, gateway_};
  std::vector<std::optional<TunnelAnswer>> answers_;
};

using End = ScriptedGateway::End;

TEST_F(GatewayReplacementTest, ReportsTheGatewayAfterwards) {
  const ReplacementReport report = Replace(0);
  EXPECT_EQ(report.reason(), "");
  EXPECT_EQ(report.after().version(), "0.2");
  EXPECT_EQ(report.handed_over().sessions(), 3U);
}

TEST_F(GatewayReplacementTest, ARefusalIsReportedWithItsReason) {
  gateway_.end = End::kRefused;
  const ReplacementReport report = Replace(0);
  EXPECT_TRUE(report.refused());
  EXPECT_EQ(report.reason(), "sessions");
  EXPECT_EQ(report.text(), "XRC domains");
  EXPECT_EQ(report.after().version(), "0.1");
}

TEST_F(GatewayReplacementTest, ARefusedReplacementIsTriedAgainWhenAskedAgain) {
  gateway_.end = End::kRefused;
  (void)Replace(0);
  gateway_.end = End::kReplaced;
  EXPECT_EQ(Replace(0).reason(), "");
  EXPECT_EQ(gateway_.orders, 2);
}

TEST_F(GatewayReplacementTest, AnotherTakeOverInProgressIsWaitedFor) {
  gateway_.end = End::kBusyOnce;
  EXPECT_EQ(Replace(0).reason(), "");
  EXPECT_EQ(gateway_.orders, 2);
}

TEST_F(GatewayReplacementTest, ALostAnswerOfTheOldProcessIsNoFailure) {
  gateway_.end = End::kAnswerLost;
  const ReplacementReport report = Replace(0);
  EXPECT_EQ(report.reason(), "");
  EXPECT_FALSE(report.has_handed_over());
  EXPECT_EQ(gateway_.orders, 1);
}

TEST_F(GatewayReplacementTest, ARepeatedQuestionDoesNotReplaceTwice) {
  const size_t first = Start(0);
  const size_t second = Start(0);
  EXPECT_EQ(Await(first).replacement().after().version(), "0.2");
  EXPECT_EQ(Await(second).replacement().after().version(), "0.2");
  const ReplacementReport later = Replace(0);
  EXPECT_EQ(later.after().version(), "0.2");
  EXPECT_EQ(later.handed_over().sessions(), 3U);
  EXPECT_EQ(gateway_.orders, 1);
}

TEST_F(GatewayReplacementTest, AnAgentThatWasRestartedFindsTheTakeOverThatWas) {
  gateway_.Replace();
  const ReplacementReport report = Replace(0);
  EXPECT_EQ(report.reason(), "");
  EXPECT_EQ(report.after().version(), "0.2");
  EXPECT_EQ(gateway_.orders, 0);
}

TEST_F(GatewayReplacementTest, ASuccessBeforeACrashOfTheGatewayIsNotReportedAgain) {
  (void)Replace(0);
  gateway_.Restart();
  EXPECT_EQ(gateway_.status.version(), "0.3");
  EXPECT_EQ(Replace(0).after().version(), "0.4");
  EXPECT_EQ(gateway_.orders, 2);
}

TEST_F(GatewayReplacementTest, ATakeOverAfterACrashIsNotTheOneBeforeIt) {
  (void)Replace(0);
  gateway_.Restart();
  gateway_.Replace();
  const ReplacementReport report = Replace(0);
  EXPECT_EQ(report.after().version(), "0.4");
  EXPECT_FALSE(report.has_handed_over());
  EXPECT_EQ(gateway_.orders, 1);
}

TEST_F(GatewayReplacementTest, AnotherQuestionMeanwhileIsRefused) {
  const size_t first = Start(0);
  EXPECT_EQ(Await(Start(7)).code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Await(first).replacement().reason(), "");
}

TEST_F(GatewayReplacementTest, ARestartIsNoReplacement) {
  gateway_.end = End::kRestarts;
  EXPECT_EQ(Replace(0).reason(), "restarted");
}

TEST_F(GatewayReplacementTest, AGatewayWithFewerTakeOversWasRestarted) {
  EXPECT_EQ(Replace(4).reason(), "restarted");
  EXPECT_EQ(gateway_.orders, 0);
}

TEST_F(GatewayReplacementTest, AnOlderGatewayIsReported) {
  gateway_.end = End::kUnknownCall;
  const ReplacementReport report = Replace(0);
  EXPECT_EQ(report.reason(), "unsupported");
  EXPECT_FALSE(report.refused());
}

TEST_F(GatewayReplacementTest, WithoutAResultTheTimeLimitEndsIt) {
  gateway_.end = End::kNothing;
  const ReplacementReport report = Replace(0, 1);
  EXPECT_EQ(report.reason(), "deadline");
  EXPECT_EQ(gateway_.orders, 1);
}

TEST_F(GatewayReplacementTest, AGatewayThatDoesNotAnswerIsNamed) {
  gateway_.away = true;
  const ReplacementReport report = Replace(0, 1);
  EXPECT_EQ(report.reason(), "deadline");
  EXPECT_NE(report.text().find("the gateway does not answer"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::agent
