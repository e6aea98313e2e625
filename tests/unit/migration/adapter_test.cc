// SPDX-License-Identifier: Apache-2.0
// Adapters: answers that are foreign input, programs that hang, flood or lie, and the conformance
// test, which finds each rule that is broken on purpose.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "controlplane/migration/adapter/protocol.h"
#include "controlplane/migration/adapter_process/conformance.h"
#include "controlplane/migration/adapter_process/program_run.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::migration {
namespace {

constexpr std::chrono::seconds kPatience(20);

TEST(AdapterProtocol, AnAnswerIsReadWithItsEvidence) {
  const AdapterAnswer answer = ReadAnswer(
      R"({"protocol":1,"id":"7","outcome":"not-yet","text":"busy","outstanding":3,"stated":"gateway",)"
      R"("counted":"tcp","journal_intact":true,"config_hash":"h","clients_on_old":0,"gateway_version":"1.2.0"})",
      "7");
  EXPECT_EQ(answer.outcome, Outcome::kNotYet);
  EXPECT_EQ(answer.evidence.outstanding, 3U);
  EXPECT_EQ(answer.evidence.stated, Transport::kGateway);
  EXPECT_EQ(answer.evidence.counted, Transport::kTcp);
  EXPECT_EQ(answer.evidence.output_digest.substr(0, 7), "sha256:");
}

TEST(AdapterProtocol, WhatIsNotReportedIsNotInvented) {
  const AdapterAnswer answer = ReadAnswer(R"({"protocol":1,"id":"7","outcome":"done"})", "7");
  EXPECT_EQ(answer.outcome, Outcome::kDone);
  EXPECT_FALSE(answer.evidence.outstanding.has_value());
  EXPECT_FALSE(answer.evidence.journal_intact.has_value());
}

TEST(AdapterProtocol, AnswersThatAreNotUnderstoodStopTheStep) {
  for (const char* line : {"", "ok", "[]", "{}", R"({"protocol":1,"id":"7"})",
                           R"({"protocol":2,"id":"7","outcome":"done"})",
                           R"({"protocol":1,"id":"8","outcome":"done"})",
                           R"({"protocol":1,"id":"7","outcome":"fine"})",
                           R"({"protocol":1,"id":"7","outcome":"stale-epoch"})",
                           R"({"protocol":1,"id":"7","outcome":"done","outstanding":-1})",
                           R"({"protocol":1,"id":"7","outcome":"done","outstanding":"0"})",
                           R"({"protocol":1,"id":"7","outcome":"done","stated":"carrier pigeon"})",
                           R"({"protocol":1,"id":"7","outcome":"done","colour":"green"})"}) {
    EXPECT_EQ(ReadAnswer(line, "7").outcome, Outcome::kUnparsable) << line;
  }
}

TEST(AdapterProtocol, OnlyAQuestionIsCalledOne) {
  AdapterRequest request{.call = "verify", .id = "0", .cluster = "c1", .node = "n1"};
  EXPECT_EQ(RequestLine(request).find("question"), std::string::npos);
  request.question = true;
  EXPECT_NE(RequestLine(request).find(R"("question":true)"), std::string::npos);
}

TEST(AdapterProtocol, ControlCharactersOfAnAdapterAreEscaped) {
  const AdapterAnswer answer =
      ReadAnswer(R"({"protocol":1,"id":"7","outcome":"failed","text":"a\u001b[31m\nb"})", "7");
  EXPECT_EQ(answer.text, "a\\x1b[31m\\x0ab");
}

TEST(ProgramRun, ReturnsOutputErrorsAndStatus) {
  const ProgramRun run =
      RunProgram({"sh", "-c", "cat; echo trouble >&2; exit 3"}, "input\n", {kPatience});
  EXPECT_EQ(run.output, "input\n");
  EXPECT_EQ(run.last_error, "trouble\n");
  EXPECT_EQ(run.exit_status, 3);
}

TEST(ProgramRun, ADeadlineEndsTheProgramAndItsChildren) {
  ProgramLimits limits;
  limits.deadline = std::chrono::milliseconds(200);
  const ProgramRun run = RunProgram({"sh", "-c", "tail -f /dev/null & echo $!; wait"}, "", limits);
  EXPECT_TRUE(run.timed_out);
  const pid_t child = static_cast<pid_t>(std::stol(run.output));
  // The group was killed; its member is gone, or goes.
  const UniqueFd member(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!member.valid()) return;
  pollfd entry{member.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 10'000), 1) << "process " << child << " runs";
}

TEST(ProgramRun, OutputIsBounded) {
  ProgramLimits limits{kPatience, 1000};
  const ProgramRun run = RunProgram({"sh", "-c", "yes"}, "", limits);
  EXPECT_TRUE(run.too_much);
  EXPECT_FALSE(run.timed_out);
  EXPECT_LT(run.output.size(), 40'000U);
}

TEST(ProgramRun, AProgramThatDoesNotReadItsInputIsNoTrouble) {
  const ProgramRun run = RunProgram({"true"}, std::string(1 << 20, 'x'), {kPatience});
  EXPECT_EQ(run.exit_status, 0);
}

TEST(ProgramRun, AProgramThatIsNotThereIsNamed) {
  EXPECT_EQ(RunProgram({"no-such-program-here"}, "", {}).problem,
            "cannot start no-such-program-here: No such file or directory");
  EXPECT_EQ(RunProgram({}, "", {}).problem, "no program");
}

TEST(FailureCase, C31_ASecretOnStandardErrorIsRedacted) {
  const Adapter adapter({"sh", "-c", "echo 'password=hunter2 refused' >&2; exit 1"});
  const AdapterRequest request{.call = "health", .id = "1", .cluster = "c1", .node = "n1"};
  EXPECT_EQ(adapter.Call(request).text, "exit status 1 (password=[redacted] refused)");
}

class ConformanceTest : public ::testing::Test {
 protected:
  ConformanceTest() {
    char pattern[] = "/tmp/rocegw_adapter_XXXXXX";
    folder_ = mkdtemp(pattern);
    for (const char* name : {"n1", "n2"}) {
      std::ofstream(folder_ + "/" + name + ".json")
          << R"({"config": "port 7000", "paths": {"tcp": "active"}, "uses": "tcp", "outstanding": 2,)"
          << R"( "clients_on_old": 0, "rack": "r1"})";
    }
  }
  ~ConformanceTest() override { std::filesystem::remove_all(folder_); }

  // Returns the names of the failed checks.
  std::vector<std::string> FailedChecks(const std::string& fault) {
    std::vector<std::string> words = {FILE_ADAPTER, folder_};
    if (!fault.empty()) words.insert(words.end(), {"--fault", fault});
    ConformanceOptions options{.cluster = "c1", .change_node = "n1"};
    options.deadline_seconds = fault == "hangs" ? 1 : 20;
    std::vector<std::string> failed;
    TestAdapter(words, options, [&](const ConformanceCheck& check) {
      if (!check.passed) failed.push_back(check.name + ": " + check.text);
    });
    return failed;
  }
  std::string FirstFailed(const std::string& fault) {
    const std::vector<std::string> failed = FailedChecks(fault);
    return failed.empty() ? "" : failed.front();
  }

  std::string folder_;
};

TEST_F(ConformanceTest, TheExamplePasses) {
  EXPECT_EQ(FailedChecks(""), std::vector<std::string>());
}

TEST_F(ConformanceTest, EachBrokenRuleIsFound) {
  EXPECT_EQ(FirstFailed("floods"),
            "an unknown node fails: the outcome is unparsable, not failed: "
            "more than 65536 bytes of output");
  EXPECT_NE(FirstFailed("talks").find("more than one line"), std::string::npos);
  EXPECT_NE(FirstFailed("other-id").find("id is not the one of the request"), std::string::npos);
  EXPECT_NE(FirstFailed("new-field").find("colour is not a field"), std::string::npos);
  EXPECT_NE(FirstFailed("agrees").find("an unknown call fails"), std::string::npos);
  EXPECT_EQ(FirstFailed("falls-back"),
            "verify: failed: the application says gateway, but its bytes go over tcp");
}

TEST_F(ConformanceTest, AMissingWitnessDecidesNothing) {
  EXPECT_EQ(
      FirstFailed("no-witness"),
      "verify: inconclusive: the adapter did not report which transport the byte counters show");
}

TEST_F(ConformanceTest, ARestoreThatIsNotTheBackupIsFound) {
  EXPECT_EQ(FirstFailed("loses-backup"),
            "restore: failed: the configuration is not the backed-up one");
}

TEST_F(ConformanceTest, AHangingAdapterIsEndedAtItsDeadline) {
  EXPECT_NE(FirstFailed("hangs").find("no answer within 1 s"), std::string::npos);
}

// A cluster of one node whose transport is the word in its configuration file.
class GenericAdapterTest : public ::testing::Test {
 protected:
  GenericAdapterTest() {
    char pattern[] = "/tmp/rocegw_generic_XXXXXX";
    folder_ = mkdtemp(pattern);
    Write("n1.conf", "tcp");
    Write("tcp", "tcp");
    Write("gateway", "gateway");
    Write("count", "0 0");
    Write("exercise", "cd " + folder_ + R"sh(
read r t < count
if [ "$(cat n1.conf)" = gateway ]; then r=$((r+9)); else t=$((t+9)); fi
echo $r $t > count)sh");
    Write("c1.json",
          R"({"class":"dual-path","nodes":[{"name":"n1","transport":"tcp"}],"files":[{"path":")" +
              folder_ + R"(/{node}.conf","tcp":")" + folder_ + R"(/tcp","gateway":")" + folder_ +
              R"(/gateway"}],"questions":{"transport":["cat",")" + folder_ +
              R"(/n1.conf"],"bytes":["cat",")" + folder_ + R"(/count"],"exercise":["sh",")" +
              folder_ + R"(/exercise"],"journal":["true"],"outstanding":["echo","0"]}})");
  }
  ~GenericAdapterTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name) << text << "\n";
  }
  std::string Config() const {
    std::ifstream file(folder_ + "/n1.conf");
    std::string text;
    std::getline(file, text);
    return text;
  }
  std::vector<std::string> Words() const {
    return {"env", "ROCEGW_GENERIC_DIR=" + folder_, "ROCEGW_GENERIC_STATE=" + folder_ + "/state",
            GENERIC_ADAPTER};
  }
  Outcome Call(const std::string& call) const {
    const AdapterRequest request{.call = call, .id = "1", .cluster = "c1", .node = "n1"};
    return Adapter(Words()).Call(request).outcome;
  }

  std::string folder_;
};

TEST_F(GenericAdapterTest, Conforms) {
  std::string failed;
  TestAdapter(Words(), {.cluster = "c1", .change_node = "n1"}, [&](const ConformanceCheck& check) {
    if (!check.passed) failed += check.name + ": " + check.text + "\n";
  });
  EXPECT_EQ(failed, "");
}

TEST_F(GenericAdapterTest, ABackupIsOfTheMigrationThatChangesTheFile) {
  EXPECT_EQ(Call("backup"), Outcome::kDone);
  // The node was blocked, and an administrator repaired its file.
  Write("n1.conf", "repaired");
  EXPECT_EQ(Call("backup"), Outcome::kDone);
  EXPECT_EQ(Call("switch"), Outcome::kDone);
  EXPECT_EQ(Config(), "gateway");
  // A backup that is sent again must not save the changed file.
  EXPECT_EQ(Call("backup"), Outcome::kDone);
  EXPECT_EQ(Call("restore"), Outcome::kDone);
  EXPECT_EQ(Config(), "repaired");
  Write("n1.conf", "edited between two migrations");
  EXPECT_EQ(Call("backup"), Outcome::kDone);
  EXPECT_EQ(Call("switch"), Outcome::kDone);
  EXPECT_EQ(Call("restore"), Outcome::kDone);
  EXPECT_EQ(Config(), "edited between two migrations");
}

TEST_F(GenericAdapterTest, NothingIsSwitchedWithoutABackup) {
  EXPECT_EQ(Call("switch"), Outcome::kFailed);
  EXPECT_EQ(Config(), "tcp");
}

}  // namespace
}  // namespace rocegw::migration
