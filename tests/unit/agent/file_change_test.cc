// SPDX-License-Identifier: Apache-2.0
#include "agent/supervise/file_change.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/expose/attach_rules.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing::file_change {
namespace {

class FileChangeTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop_.Open().ok()); }
  void Write(const std::string& name, const std::string& text = "x") {
    std::ofstream(folder_.File(name)) << text;
  }
  // Runs the loop until so many calls have come, or none came for a long time.
  void Await(int calls) {
    for (int round = 0; round < 100 && calls_ < calls; ++round) loop_.RunOnce(Milliseconds(100));
    loop_.RunOnce(Milliseconds(200));
  }

  ScratchDirectory folder_;
  ControlLoop loop_;
  int calls_ = 0;
};

TEST_F(FileChangeTest, WrittenReplacedOrNew_IsNoticedOnce) {
  const agent::FileChange change(loop_, folder_.File("a.yaml"), [this] { ++calls_; });
  Write("a.yaml");
  Await(1);
  EXPECT_EQ(calls_, 1);
  Write("a.yaml", "y");
  Write("a.yaml", "z");
  Await(2);
  EXPECT_EQ(calls_, 2) << "changes in quick succession are one";
  Write("a.yaml.new");
  std::filesystem::rename(folder_.File("a.yaml.new"), folder_.File("a.yaml"));
  Await(3);
  EXPECT_EQ(calls_, 3);
}

TEST_F(FileChangeTest, OtherFiles_DoNotMatter) {
  const agent::FileChange change(loop_, folder_.File("a.yaml"), [this] { ++calls_; });
  Write("b.yaml");
  Write("a.yaml.swp");
  for (int round = 0; round < 5; ++round) loop_.RunOnce(Milliseconds(50));
  EXPECT_EQ(calls_, 0);
}

TEST_F(FileChangeTest, NoFile_NeverCalls) {
  const agent::FileChange none(loop_, "", [this] { ++calls_; });
  const agent::FileChange nowhere(loop_, "/nonexistent/a.yaml", [this] { ++calls_; });
  loop_.RunOnce({});
  EXPECT_EQ(calls_, 0);
}

TEST(RuleVerdicts, Replaced_HoldForWhoComesThen) {
  agent::RuleVerdicts rules({});
  gateway::v1::HeldAttach attach;
  attach.set_pool("tenants/a/pools/p");
  attach.set_uid(7);
  EXPECT_FALSE(rules.Decide(attach).allowed);
  const std::vector<agent::AttachRule> fresh = {{.pool = "tenants/a/pools/p", .uids = {7}}};
  EXPECT_TRUE(rules.Replace(fresh));
  EXPECT_TRUE(rules.Decide(attach).allowed);
  EXPECT_FALSE(rules.Replace(fresh)) << "the same";
  EXPECT_TRUE(rules.Replace({}));
  EXPECT_FALSE(rules.Decide(attach).allowed);
}

}  // namespace
}  // namespace rocegw::testing::file_change
