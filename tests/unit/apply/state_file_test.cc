// SPDX-License-Identifier: Apache-2.0
#include "gateway/apply/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rocegw::apply {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest() {
    char name[] = "/tmp/rocegw-state-XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/config.state";
    state.set_source("store");
    state.set_applied_revision(9);
    state.add_objects()->set_name("tenants/red");
  }
  ~StateFileTest() override { std::filesystem::remove_all(folder); }

  std::string folder;
  std::string path;
  gateway::v1::GetConfigResponse state;
  gateway::v1::GetConfigResponse read;
};

TEST_F(StateFileTest, Written_IsReadAgainAndOnlyItsOwnerMay) {
  ASSERT_TRUE(WriteStateFile(path, state).ok());
  auto known = ReadStateFile(path, read);
  ASSERT_TRUE(known.ok() && *known);
  EXPECT_EQ(read.SerializeAsString(), state.SerializeAsString());
  struct stat info {};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST_F(StateFileTest, NotThere_IsNoError) {
  auto known = ReadStateFile(path, read);
  ASSERT_TRUE(known.ok());
  EXPECT_FALSE(*known);
  EXPECT_FALSE(*ReadStateFile("", read));
}

TEST_F(StateFileTest, EveryTruncation_IsNoticedOrTheOldState) {
  ASSERT_TRUE(WriteStateFile(path, state).ok());
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  // Truncated within the header or a field; a cut between two fields cannot occur, since complete
  // files are renamed.
  for (size_t length = 0; length < 24; ++length) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, length);
    EXPECT_FALSE(ReadStateFile(path, read).ok()) << length;
  }
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, bytes.size() - 1);
  EXPECT_FALSE(ReadStateFile(path, read).ok());
}

TEST_F(StateFileTest, LeftoverOfACrash_IsInNobodysWay) {
  std::ofstream(path + ".new") << "half";
  ASSERT_TRUE(WriteStateFile(path, state).ok());
  EXPECT_TRUE(*ReadStateFile(path, read));
}

}  // namespace
}  // namespace rocegw::apply
