// SPDX-License-Identifier: Apache-2.0
// Calls of adapters by the agent: commands that come twice, late, from a replaced controller, after
// a restart of the agent; programs that the agent must not run.
#include "agent/migration/adapter_calls.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>

namespace rocegw::agent {
namespace {

using fleet::v1::MigrationCall;
using fleet::v1::TunnelAnswer;

// Answers "done" and notes each call in a file. It waits while the file "hold" is there.
constexpr char kAdapter[] = R"sh(#!/bin/sh
cd "$(dirname "$0")"
read line
echo "$line" >> calls
while [ -e hold ]; do sleep 0.02; done
id=$(echo "$line" | sed 's/.*"id":"\([0-9]*\)".*/\1/')
echo "{\"protocol\":1,\"id\":\"$id\",\"outcome\":\"done\",\"config_hash\":\"h$id\"}"
)sh";

class AdapterCallsTest : public ::testing::Test {
 protected:
  AdapterCallsTest() {
    char pattern[] = "/tmp/rocegw_calls_XXXXXX";
    folder_ = mkdtemp(pattern);
    WriteProgram("site", kAdapter, 0755);
    EXPECT_TRUE(loop_.Open().ok());
    Restart();
  }
  ~AdapterCallsTest() override {
    calls_.reset();
    std::filesystem::remove_all(folder_);
  }

  void WriteProgram(const std::string& name, const std::string& text, mode_t mode) {
    std::ofstream(folder_ + "/" + name) << text;
    chmod((folder_ + "/" + name).c_str(), mode);
  }
  void Restart() {
    calls_.reset();
    calls_ = std::make_unique<AdapterCalls>(
        loop_, AdapterCalls::Options{.adapters_dir = folder_, .state_dir = folder_ + "/state"});
  }
  static MigrationCall Command(uint64_t epoch, uint64_t command,
                               const std::string& step = "drain") {
    MigrationCall call;
    call.set_migration("migrations/m");
    call.set_epoch(epoch);
    call.set_command(command);
    call.set_adapter("site");
    call.set_call(step);
    call.set_cluster("c1");
    call.set_node("n1");
    call.set_from("tcp");
    call.set_to("gateway");
    call.mutable_time_limit()->set_seconds(30);
    return call;
  }
  // Starts a call; its answer is at the same index of answers_.
  size_t Start(const MigrationCall& call) {
    const size_t index = answers_.size();
    answers_.emplace_back();
    calls_->Start(call, [this, index](TunnelAnswer answer) { answers_[index] = answer; });
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
  TunnelAnswer Ask(const MigrationCall& call) { return Await(Start(call)); }
  std::string Outcome(const MigrationCall& call) { return Ask(call).migration_report().outcome(); }
  size_t CallsMade() const {
    std::ifstream file(folder_ + "/calls");
    return static_cast<size_t>(
        std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n'));
  }
  void Hold() { std::ofstream(folder_ + "/hold") << ""; }
  void Release() { std::filesystem::remove(folder_ + "/hold"); }
  void AwaitCall(size_t count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (CallsMade() < count && std::chrono::steady_clock::now() < end)
      loop_.RunOnce(Milliseconds(20));
    EXPECT_EQ(CallsMade(), count);
  }

  std::string folder_;
  ControlLoop loop_;
  std::unique_ptr<AdapterCalls> calls_;
  std::vector<std::optional<TunnelAnswer>> answers_;
};

TEST_F(AdapterCallsTest, ACommandRunsOnceHoweverOftenItIsSent) {
  EXPECT_EQ(Ask(Command(1, 7)).migration_report().config_hash(), "h7");
  EXPECT_EQ(Ask(Command(1, 7)).migration_report().config_hash(), "h7");
  EXPECT_EQ(CallsMade(), 1U);
  EXPECT_EQ(Outcome(Command(1, 8)), "done");
  EXPECT_EQ(CallsMade(), 2U);
}

TEST_F(AdapterCallsTest, TheResultIsKnownAfterARestart) {
  EXPECT_EQ(Outcome(Command(1, 7)), "done");
  Restart();
  EXPECT_EQ(Ask(Command(2, 7)).migration_report().config_hash(), "h7");
  EXPECT_EQ(CallsMade(), 1U);
}

// Failure case 5: a command of a controller that was replaced comes late.
TEST_F(AdapterCallsTest, AReplacedControllerIsRefusedAlsoAfterARestart) {
  EXPECT_EQ(Outcome(Command(3, 7)), "done");
  EXPECT_EQ(Outcome(Command(2, 8)), "stale-epoch");
  Restart();
  EXPECT_EQ(Outcome(Command(2, 8)), "stale-epoch");
  EXPECT_EQ(CallsMade(), 1U);
}

TEST_F(AdapterCallsTest, AQuestionForARunningCommandGetsItsResult) {
  Hold();
  const size_t first = Start(Command(1, 7));
  AwaitCall(1);
  const size_t second = Start(Command(2, 7));
  const size_t other = Start(Command(2, 8));
  EXPECT_EQ(Await(other).code(), grpc::StatusCode::UNAVAILABLE);
  Release();
  EXPECT_EQ(Await(first).migration_report().config_hash(), "h7");
  EXPECT_EQ(Await(second).migration_report().config_hash(), "h7");
  EXPECT_EQ(CallsMade(), 1U);
}

// Failure case 2: the agent is killed. Its program ends with it, and the command runs again.
TEST_F(AdapterCallsTest, ACommandThatRanWhenTheAgentEndedRunsAgain) {
  Hold();
  (void)Start(Command(1, 7));
  AwaitCall(1);
  const auto began = std::chrono::steady_clock::now();
  Restart();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  Release();
  EXPECT_EQ(Outcome(Command(2, 7)), "done");
  EXPECT_EQ(CallsMade(), 2U);
}

// Failure case 30: the storage system's tool hangs.
TEST_F(AdapterCallsTest, AHangingToolIsEndedAtItsDeadline) {
  Hold();
  MigrationCall call = Command(1, 7);
  call.mutable_time_limit()->set_seconds(1);
  EXPECT_EQ(Outcome(call), "timed-out");
}

TEST_F(AdapterCallsTest, TheNumberOfRunningProgramsIsBounded) {
  Hold();
  std::vector<size_t> started;
  for (size_t i = 0; i < AdapterCalls::kMost; ++i) {
    MigrationCall call = Command(1, 7);
    call.set_migration("migrations/m" + std::to_string(i));
    started.push_back(Start(call));
  }
  MigrationCall call = Command(1, 7);
  call.set_migration("migrations/another");
  EXPECT_EQ(Ask(call).code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  Release();
  for (const size_t index : started) EXPECT_EQ(Await(index).migration_report().outcome(), "done");
  EXPECT_EQ(Outcome(call), "done");
}

// People ask as often as they like. What they ask must not keep steps of a migration waiting.
TEST_F(AdapterCallsTest, QuestionsLeaveRoomForCommands) {
  Hold();
  std::vector<size_t> started = {Start(Command(1, 0, "verify"))};
  EXPECT_EQ(Ask(Command(1, 0, "verify")).code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Ask(Command(1, 0, "verify-old")).code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  while (started.size() < AdapterCalls::kMostQuestions)
    started.push_back(Start(Command(1, 0, "health")));
  EXPECT_EQ(Ask(Command(1, 0, "health")).code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  while (started.size() < AdapterCalls::kMost) {
    MigrationCall call = Command(1, 7, "verify");
    call.set_migration("migrations/m" + std::to_string(started.size()));
    started.push_back(Start(call));
  }
  Release();
  for (const size_t index : started) EXPECT_EQ(Await(index).migration_report().outcome(), "done");
}

TEST_F(AdapterCallsTest, OnlyProgramsOfTheAdministratorRun) {
  MigrationCall call = Command(1, 7);
  call.set_adapter("another");
  EXPECT_EQ(Ask(call).code(), grpc::StatusCode::FAILED_PRECONDITION);
  WriteProgram("open", kAdapter, 0777);
  call.set_adapter("open");
  EXPECT_NE(Ask(call).message().find("can be changed by other users"), std::string::npos);
  call.set_adapter("../site");
  EXPECT_EQ(Ask(call).message(), "this is no name of an adapter");
  calls_ = std::make_unique<AdapterCalls>(
      loop_, AdapterCalls::Options{.adapters_dir = {}, .state_dir = folder_ + "/state"});
  EXPECT_NE(Ask(Command(1, 7)).message().find("migration.adapters_dir"), std::string::npos);
  EXPECT_EQ(CallsMade(), 0U);
}

TEST_F(AdapterCallsTest, AQuestionRunsBesideACommandAndSaysThatItIsOne) {
  Hold();
  const size_t command = Start(Command(2, 7));
  AwaitCall(1);
  // The epoch was replaced: a question changes nothing, and needs none.
  const size_t question = Start(Command(1, 0, "verify"));
  AwaitCall(2);
  Release();
  EXPECT_EQ(Await(command).migration_report().outcome(), "done");
  EXPECT_EQ(Await(question).migration_report().outcome(), "done");
  std::ifstream file(folder_ + "/calls");
  std::string of_command;
  std::string of_question;
  std::getline(file, of_command);
  std::getline(file, of_question);
  EXPECT_EQ(of_command.find("question"), std::string::npos);
  EXPECT_NE(of_question.find(R"("question":true)"), std::string::npos);
}

TEST_F(AdapterCallsTest, CallsThatAreNotUnderstoodAreRefused) {
  const auto code = [this](const std::function<void(MigrationCall&)>& change) {
    MigrationCall call = Command(1, 7);
    change(call);
    return Ask(call).code();
  };
  EXPECT_EQ(code([](auto& c) { c.set_call("reboot"); }), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto& c) { c.set_from("pigeon"); }), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code([](auto& c) { c.set_migration("migrations/../m"); }),
            grpc::StatusCode::INVALID_ARGUMENT);
  // Only questions need no number.
  EXPECT_EQ(code([](auto& c) { c.set_command(0); }), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CallsMade(), 0U);
}

// A migration was deleted, and another one has its name: its numbers and epochs begin anew.
TEST_F(AdapterCallsTest, ALaterMigrationOfTheSameNameBeginsItsOwnBook) {
  EXPECT_EQ(Outcome(Command(3, 7)), "done");
  MigrationCall later = Command(1, 1);
  later.set_incarnation(50);
  EXPECT_EQ(Outcome(later), "done");
  Restart();
  EXPECT_EQ(Outcome(later), "done");
  EXPECT_EQ(CallsMade(), 2U);
  EXPECT_EQ(Ask(Command(4, 8)).code(), grpc::StatusCode::FAILED_PRECONDITION) << "the deleted one";
  EXPECT_EQ(CallsMade(), 2U);
}

TEST_F(AdapterCallsTest, ADamagedBookStopsTheMigrationOnThisHost) {
  EXPECT_EQ(Outcome(Command(1, 7)), "done");
  std::ofstream(folder_ + "/state/migrations/m.json") << "{}";
  Restart();
  EXPECT_EQ(Ask(Command(1, 8)).code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(CallsMade(), 1U);
}

}  // namespace
}  // namespace rocegw::agent
