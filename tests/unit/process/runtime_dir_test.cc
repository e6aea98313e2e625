// SPDX-License-Identifier: Apache-2.0
// Checks of a daemon's directory and users at its start.
#include "gateway/process/runtime_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace rocegw::process {
namespace {

class RuntimeDirTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    base_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(base_); }
  std::string base_;
};

TEST_F(RuntimeDirTest, Claim_MakesItAndKeepsOthersOut) {
  const std::string path = base_ + "/a/b";
  RuntimeDir first("runtime_dir", "rocegwd");
  ASSERT_TRUE(first.Claim(path).ok());
  RuntimeDir second("runtime_dir", "rocegwd");
  const Status refused = second.Claim(path);
  EXPECT_EQ(refused.error(), EADDRINUSE);
  EXPECT_EQ(refused.text(), "runtime_dir " + path + " belongs to process " +
                                std::to_string(getpid()) +
                                "; stop that rocegwd, or set runtime_dir");
  first.Release();
  EXPECT_TRUE(second.Claim(path).ok());
}

TEST_F(RuntimeDirTest, Inherited_KeepsOthersOutBeyondTheFirstHolder) {
  RuntimeDir first("runtime_dir", "rocegwd");
  ASSERT_TRUE(first.Claim(base_).ok());
  OfferedFds offered;
  first.Offer(offered);
  ASSERT_EQ(offered.size(), 1u);
  EXPECT_EQ(offered[0].name, base_);
  RuntimeDir successor("runtime_dir", "rocegwd");
  ASSERT_TRUE(successor.Inherit(base_, UniqueFd(dup(offered[0].fd))).ok());
  first.Release();
  RuntimeDir other("runtime_dir", "rocegwd");
  EXPECT_EQ(other.Claim(base_).error(), EADDRINUSE);
  EXPECT_TRUE(successor.NameHolder().ok());
  successor.Release();
  EXPECT_TRUE(other.Claim(base_).ok());
}

TEST_F(RuntimeDirTest, Inherited_OfAnotherFile_IsRefused) {
  RuntimeDir dir("runtime_dir", "rocegwd");
  ASSERT_TRUE(dir.Claim(base_).ok());
  OfferedFds offered;
  dir.Offer(offered);
  std::filesystem::remove(base_ + "/lock");
  RuntimeDir successor("runtime_dir", "rocegwd");
  EXPECT_EQ(successor.Inherit(base_, UniqueFd(dup(offered[0].fd))).error(), ESTALE);
}

TEST_F(RuntimeDirTest, Claim_NotADirectory_SaysWhy) {
  RuntimeDir dir("runtime_dir", "rocegwd");
  EXPECT_EQ(dir.Claim("/dev/null/x").text(),
            "runtime_dir /dev/null/x: cannot be made: Not a directory");
}

TEST(Owner, NamesAndNumbers_AreFound) {
  const auto root = FindOwner("root:root");
  ASSERT_TRUE(root.ok());
  EXPECT_EQ(root.value().uid, 0u);
  EXPECT_EQ(root.value().gid, 0u);
  EXPECT_EQ(FindOwner(":12").value().gid, 12u);
  EXPECT_EQ(FindOwner(":12").value().uid, static_cast<uid_t>(-1));
  EXPECT_EQ(FindOwner("1234").value().uid, 1234u);
  EXPECT_EQ(FindOwner("").value().gid, static_cast<gid_t>(-1));
  EXPECT_EQ(FindOwner("no-such-user").status().text(), "owner: there is no user 'no-such-user'");
  EXPECT_EQ(FindOwner("root:no-such-group").status().text(),
            "owner: there is no group 'no-such-group'");
}

}  // namespace
}  // namespace rocegw::process
