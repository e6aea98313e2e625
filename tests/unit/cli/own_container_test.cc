// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/own_container.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace rocegw::cli {
namespace {

namespace fs = std::filesystem;

class OwnContainer : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    directory_ = pattern;
    Write("proc/self/cgroup", "0::/\n");
    Write("proc/41/cgroup", "0::/\n");
    Write("proc/42/cgroup", "0::/../cri-containerd-another.scope\n");
    Write("proc/43/cgroup", "");
  }
  void TearDown() override { fs::remove_all(directory_); }

  void Write(const std::string& name, const std::string& text) const {
    const fs::path path = directory_ + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  bool HolderIsHere(const std::string& lock) const {
    Write("lock", lock);
    return HolderIsInThisContainer(directory_ + "/lock", directory_ + "/proc");
  }

  std::string directory_;
};

TEST_F(OwnContainer, TheHolderIsWhereItsControlGroupsAre) {
  EXPECT_TRUE(HolderIsHere("41\n"));
  EXPECT_FALSE(HolderIsHere("42\n"));
}

TEST_F(OwnContainer, AHolderThatIsNotKnownIsElsewhere) {
  for (const char* const lock : {"", "\n", "0\n", "-41\n", "41", "41 \n", "x41\n", "43\n", "44\n",
                                 "99999999999999999999\n", "../41\n", "self\n"})
    EXPECT_FALSE(HolderIsHere(lock)) << lock;
  EXPECT_FALSE(HolderIsInThisContainer(directory_ + "/nothing", directory_ + "/proc"));
}

TEST_F(OwnContainer, WithoutControlGroupsNothingIsHere) {
  fs::remove(directory_ + "/proc/self/cgroup");
  fs::remove(directory_ + "/proc/43/cgroup");
  EXPECT_FALSE(HolderIsHere("41\n"));
  EXPECT_FALSE(HolderIsHere("43\n"));
}

}  // namespace
}  // namespace rocegw::cli
