// SPDX-License-Identifier: Apache-2.0
// Child processes: their output, their end, and no leftovers.
#include "agent/probe/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

namespace rocegw::agent {
namespace {

class ChildProcessTest : public ::testing::Test {
 protected:
  ChildProcessTest() { EXPECT_TRUE(loop_.Open().ok()); }
  void Start(const std::string& script) {
    ChildProcess::Handlers handlers;
    handlers.line = [this](std::string_view line) { lines_.emplace_back(line); };
    handlers.ended = [this](int status) { status_ = status; };
    auto started =
        ChildProcess::Start(loop_, {"/bin/sh", "-c", script}, {"WORD=given"}, std::move(handlers));
    ASSERT_TRUE(started.ok()) << started.status().text();
    child_ = std::move(*started);
  }
  template <typename Condition>
  void Until(const Condition& condition) {
    while (!condition()) loop_.RunOnce(Seconds(1));
  }
  void UntilEnd() {
    Until([this] { return status_.has_value(); });
  }

  // Returns true for a running process; a zombie left to another parent does not count.
  static bool Lives(const std::string& pid) {
    std::ifstream stream("/proc/" + pid + "/stat");
    const std::string stat((std::istreambuf_iterator<char>(stream)), {});
    return !stat.empty() && stat[stat.rfind(')') + 2] != 'Z';
  }

  ControlLoop loop_;
  std::unique_ptr<ChildProcess> child_;
  std::vector<std::string> lines_;
  std::optional<int> status_;
};

TEST_F(ChildProcessTest, Lines_StatusAndLastError) {
  Start("echo one; echo \"$WORD\"; printf rest; echo first >&2; echo last >&2; exit 7");
  UntilEnd();
  EXPECT_EQ(lines_, (std::vector<std::string>{"one", "given"})) << "what is no whole line is none";
  EXPECT_EQ(WEXITSTATUS(*status_), 7);
  EXPECT_EQ(child_->LastError(), "last");
  EXPECT_FALSE(child_->runs());
}

TEST_F(ChildProcessTest, LineThatIsTooLong_IsLeftOut) {
  Start("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after");
  UntilEnd();
  EXPECT_EQ(lines_, (std::vector<std::string>{"after"}));
}

TEST_F(ChildProcessTest, Killed_WithItsChildren) {
  Start("sleep 1000 & echo $!; wait");
  Until([this] { return !lines_.empty(); });
  child_->Kill();
  UntilEnd();
  EXPECT_TRUE(WIFSIGNALED(*status_));
  while (Lives(lines_[0])) loop_.RunOnce(Milliseconds(10));
}

TEST_F(ChildProcessTest, Destroyed_NothingIsLeft) {
  Start("echo $$; sleep 1000");
  Until([this] { return !lines_.empty(); });
  child_.reset();
  EXPECT_EQ(kill(std::stoi(lines_[0]), 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_FALSE(status_.has_value()) << "nobody is called any more";
}

TEST_F(ChildProcessTest, DestroyedByItsOwnHandlers) {
  ChildProcess::Handlers handlers;
  handlers.line = [this](std::string_view line) {
    lines_.emplace_back(line);
    child_.reset();
  };
  handlers.ended = [](int) { ADD_FAILURE(); };
  auto started = ChildProcess::Start(loop_, {"/bin/sh", "-c", "echo one; echo two; sleep 1000"}, {},
                                     std::move(handlers));
  ASSERT_TRUE(started.ok());
  child_ = std::move(*started);
  Until([this] { return child_ == nullptr; });
  EXPECT_EQ(lines_, std::vector<std::string>{"one"});
}

TEST_F(ChildProcessTest, NoSuchProgram_IsSaid) {
  const auto started = ChildProcess::Start(loop_, {"/nonexistent/program"}, {}, {});
  EXPECT_EQ(started.status().error(), ENOENT);
}

}  // namespace
}  // namespace rocegw::agent
