// SPDX-License-Identifier: Apache-2.0
// Hub of tunnels with a simulated agent that sends more than it was asked for.
#include "controlplane/sync/tunnel_hub.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rocegw::sync {
namespace {

constexpr int kInternalError = 13;  // grpc::StatusCode

class TunnelAgent : public TunnelStream {
 public:
  void Send(const fleet::v1::TunnelQuestion& question) override { questions.push_back(question); }
  void Close(StreamEnd) override {}

  std::vector<fleet::v1::TunnelQuestion> questions;
};

class TunnelHubTest : public ::testing::Test {
 protected:
  static TunnelHub::Clock::time_point InAMinute() {
    return TunnelHub::Clock::now() + std::chrono::minutes(1);
  }
  TunnelHub::Done KeepResult() {
    return [this](const TunnelResult& result) { result_ = result; };
  }
  // Sends an answer of `bytes` bytes to the newest question.
  void Answer(bool more, size_t bytes = 0) {
    fleet::v1::TunnelAnswer answer;
    answer.set_id(agent_->questions.front().id());
    answer.set_more(more);
    answer.set_message(std::string(bytes, 'x'));
    hub_.OnAnswer("gateways/g", stream_, answer);
  }
  bool Cancelled() const {
    return agent_->questions.back().cancel() &&
           agent_->questions.back().id() == agent_->questions.front().id();
  }

  TunnelHub hub_;
  const std::shared_ptr<TunnelAgent> agent_ = std::make_shared<TunnelAgent>();
  const TunnelHub::StreamId stream_ = hub_.Attach("gateways/g", agent_);
  std::optional<TunnelResult> result_;
  int parts_ = 0;
};

TEST_F(TunnelHubTest, Parts_AsManyAsGranted_ArePassedOn) {
  const auto id = hub_.AskInParts(
      "gateways/g", {}, InAMinute(), 2, [this](const fleet::v1::TunnelAnswer&) { ++parts_; },
      KeepResult());
  Answer(true);
  Answer(true);
  hub_.Grant(id, 1);
  Answer(true);
  Answer(false);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->code, 0) << result_->message;
  EXPECT_EQ(parts_, 4);
}

TEST_F(TunnelHubTest, Parts_MoreThanGranted_EndTheQuestion) {
  hub_.AskInParts(
      "gateways/g", {}, InAMinute(), 2, [this](const fleet::v1::TunnelAnswer&) { ++parts_; },
      KeepResult());
  for (int i = 0; i < 100; ++i) Answer(true);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->code, kInternalError);
  EXPECT_EQ(parts_, 2);
  EXPECT_TRUE(Cancelled());
}

TEST_F(TunnelHubTest, StoredAnswer_BeyondItsLimit_EndsTheQuestion) {
  hub_.Ask("gateways/g", {}, InAMinute(), KeepResult());
  Answer(true, TunnelHub::kMostAnswerBytes / 2);
  EXPECT_FALSE(result_.has_value());
  Answer(true, TunnelHub::kMostAnswerBytes / 2);
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->code, kInternalError);
  EXPECT_TRUE(result_->parts.empty());
  EXPECT_TRUE(Cancelled());
}

}  // namespace
}  // namespace rocegw::sync
