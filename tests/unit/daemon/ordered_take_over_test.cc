// SPDX-License-Identifier: Apache-2.0
// Take-over that the daemon starts itself: each end that its process can take.
#include "gateway/daemon/take_over/ordered_take_over.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

namespace rocegw::daemon {
namespace {

using service::TakeOverOutcome;
using take_over::Refusal;

class OrderedTakeOverTest : public ::testing::Test {
 protected:
  OrderedTakeOverTest() { EXPECT_TRUE(loop_.Open().ok()); }
  ~OrderedTakeOverTest() override {
    if (child_ > 0 && kill(child_, SIGKILL) == 0) waitpid(child_, nullptr, 0);
  }
  // The process ends with the status; -1: it waits to be killed.
  void SpawnProcess(int status) { SpawnProcess(status, take_over_); }
  void SpawnProcess(int status, OrderedTakeOver& take_over) {
    take_over.SetSpawn([this, status]() -> StatusOr<UniqueFd> {
      child_ = fork();
      if (child_ == 0) {
        if (status < 0) pause();
        _exit(status);
      }
      return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, child_, 0)));
    });
  }
  void Start() { Start(take_over_); }
  void Start(OrderedTakeOver& take_over) {
    take_over.Start([this](const StatusOr<TakeOverOutcome>& outcome) {
      EXPECT_FALSE(outcome_.has_value());
      outcome_ = outcome;
    });
  }
  const StatusOr<TakeOverOutcome>& Await() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!outcome_.has_value() && std::chrono::steady_clock::now() < end)
      loop_.RunOnce(Milliseconds(20));
    EXPECT_TRUE(outcome_.has_value());
    if (!outcome_.has_value()) outcome_ = Status(ETIMEDOUT, "no end");
    return *outcome_;
  }

  ControlLoop loop_;
  OrderedTakeOver take_over_{loop_};
  pid_t child_ = 0;
  std::optional<StatusOr<TakeOverOutcome>> outcome_;
};

TEST_F(OrderedTakeOverTest, AProcessThatNeverAsksIsReportedWithItsEnd) {
  SpawnProcess(2);
  Start();
  EXPECT_EQ(Await().value().refusal, "start");
  EXPECT_EQ(Await().value().text,
            "the new process could not start: the new process ended with status 2 before it asked; "
            "see its log");
  EXPECT_FALSE(take_over_.is_in_progress());
}

TEST_F(OrderedTakeOverTest, AKilledProcessIsReportedWithItsSignal) {
  SpawnProcess(-1);
  Start();
  kill(child_, SIGKILL);
  EXPECT_NE(Await().value().text.find("was killed by signal 9"), std::string::npos);
}

TEST_F(OrderedTakeOverTest, TheNewestRefusalIsTheResultWhenTheProcessHasEnded) {
  SpawnProcess(-1);
  Start();
  take_over_.OnRefused({Refusal::kChanged, "a program attached"});
  take_over_.OnRefused({Refusal::kSessions, "session 4: XRC domains"});
  loop_.RunOnce(Milliseconds(1));
  EXPECT_FALSE(outcome_.has_value());
  kill(child_, SIGKILL);
  EXPECT_EQ(Await().value().refusal, "sessions");
  EXPECT_EQ(Await().value().text,
            "an attached program cannot be handed over: session 4: XRC domains");
}

TEST_F(OrderedTakeOverTest, ASuccessIsReportedAtOnce) {
  SpawnProcess(-1);
  Start();
  session::Totals totals;
  totals.sessions = 5;
  take_over_.OnReplaced(Milliseconds(12), totals);
  ASSERT_TRUE(outcome_.has_value());
  EXPECT_EQ(outcome_->value().refusal, "");
  EXPECT_EQ(outcome_->value().blackout, Milliseconds(12));
  EXPECT_EQ(outcome_->value().handed_over.sessions, 5U);
}

TEST_F(OrderedTakeOverTest, ASecondOneMeanwhileIsRefused) {
  SpawnProcess(-1);
  Start();
  std::string refusal;
  take_over_.Start(
      [&](const StatusOr<TakeOverOutcome>& outcome) { refusal = outcome.value().refusal; });
  EXPECT_EQ(refusal, "busy");
  EXPECT_FALSE(outcome_.has_value());
}

TEST_F(OrderedTakeOverTest, ARefusalOfTheTakeOverBeforeIsForgotten) {
  SpawnProcess(0);
  Start();
  take_over_.OnRefused({Refusal::kSessions, "XRC domains"});
  EXPECT_EQ(Await().value().refusal, "sessions");
  outcome_.reset();
  Start();
  EXPECT_EQ(Await().value().refusal, "start");
}

TEST_F(OrderedTakeOverTest, AProcessThatNeitherAsksNorEndsIsKilled) {
  OrderedTakeOver take_over(loop_, Milliseconds(100));
  SpawnProcess(-1, take_over);
  Start(take_over);
  EXPECT_EQ(Await().value().refusal, "deadline");
  EXPECT_FALSE(take_over.is_in_progress());
  EXPECT_EQ(waitpid(child_, nullptr, 0), -1) << "it was reaped";
  child_ = 0;
  outcome_.reset();
  SpawnProcess(2, take_over);
  Start(take_over);
  EXPECT_EQ(Await().value().refusal, "start");
}

TEST_F(OrderedTakeOverTest, TheRefusalOfAKilledProcessIsTheResult) {
  OrderedTakeOver take_over(loop_, Milliseconds(100));
  SpawnProcess(-1, take_over);
  Start(take_over);
  take_over.OnRefused({Refusal::kSessions, "XRC domains"});
  EXPECT_EQ(Await().value().refusal, "sessions");
}

TEST_F(OrderedTakeOverTest, AProcessThatCannotBeWatchedIsRefused) {
  // epoll does not take a regular file.
  take_over_.SetSpawn([]() -> StatusOr<UniqueFd> {
    return UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  });
  Start();
  EXPECT_EQ(Await().value().refusal, "start");
  EXPECT_FALSE(take_over_.is_in_progress());
}

TEST_F(OrderedTakeOverTest, AStopFailsIt) {
  SpawnProcess(-1);
  Start();
  take_over_.Stop();
  ASSERT_TRUE(outcome_.has_value());
  EXPECT_EQ(outcome_->status().error(), ESHUTDOWN);
}

TEST_F(OrderedTakeOverTest, WithoutAProgramItIsRefused) {
  Start();
  EXPECT_EQ(Await().value().refusal, "start");
}

}  // namespace
}  // namespace rocegw::daemon
