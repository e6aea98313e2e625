// SPDX-License-Identifier: Apache-2.0
#include "gateway/disk/durable_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace rocegw {
namespace {

class DurableFile : public ::testing::Test {
 protected:
  DurableFile() {
    char name[] = "/tmp/rocegw-disk-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~DurableFile() override { std::filesystem::remove_all(folder_); }
  std::string File(const char* name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(DurableFile, Write_ReplacesWithItsMode) {
  EXPECT_TRUE(WriteDurably(File("f"), "one", 0600).ok());
  std::ofstream(File("f.new")) << "left by a start that died";
  EXPECT_TRUE(WriteDurably(File("f"), "two", 0640).ok());
  EXPECT_EQ(*ReadSmallFile(File("f")), "two");
  struct stat info {};
  ASSERT_EQ(stat(File("f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(DurableFile, Write_NamesWhatFails) {
  const Status status = WriteDurably(File("no/where"), "", 0600);
  EXPECT_NE(status.text().find("no/where"), std::string::npos) << status.text();
}

TEST_F(DurableFile, Read_TellsNoFileAndAFileThatIsTooLarge) {
  EXPECT_EQ(ReadSmallFile(File("none")).status().error(), ENOENT);
  ASSERT_TRUE(WriteDurably(File("f"), "four", 0600).ok());
  EXPECT_EQ(ReadSmallFile(File("f"), 3).status().error(), EFBIG);
  EXPECT_EQ(*ReadSmallFile(File("f"), 4), "four");
}

}  // namespace
}  // namespace rocegw
