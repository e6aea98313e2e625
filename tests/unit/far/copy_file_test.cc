// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/copy_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = CopyFile::kPageBytes;
constexpr uint64_t kBytes = 64 * kPage;

class CopyFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rocegw-copy-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory_ = name;
    path_ = directory_ + "/copy";
    ASSERT_EQ(posix_memalign(&memory_, kPage, kPage), 0);
  }
  void TearDown() override {
    std::free(memory_);
    unlink(path_.c_str());
    rmdir(directory_.c_str());
  }
  uint8_t* page() { return static_cast<uint8_t*>(memory_); }
  int ErrorOf(uint64_t bytes, bool keep) {
    return OpenCopyFile(path_, bytes, keep).status().error();
  }
  // A copy with one page of sevens at page 5.
  void Make() {
    auto file = OpenCopyFile(path_, kBytes, false);
    ASSERT_TRUE(file.ok()) << file.status().text();
    std::memset(page(), 7, kPage);
    ASSERT_EQ(file.value()->Write(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
    ASSERT_EQ(file.value()->Sync(), 0);
  }

  std::string directory_, path_;

 private:
  void* memory_ = nullptr;
};

TEST_F(CopyFileTest, BeginsWithZeroesAndKeepsWhatIsWritten) {
  Make();
  auto file = OpenCopyFile(path_, kBytes, true);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 7);
  EXPECT_EQ(page()[kPage - 1], 7);
  EXPECT_EQ(file.value()->Read(page(), kPage, 6 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 0);
  std::vector<std::pair<uint64_t, uint64_t>> found;
  EXPECT_EQ(
      file.value()->FindData([&](uint64_t begin, uint64_t end) { found.emplace_back(begin, end); }),
      0);
  bool covered = false;
  for (const auto& [begin, end] : found) {
    EXPECT_LE(end, kBytes);
    covered = covered || (begin <= 5 * kPage && 6 * kPage <= end);
  }
  EXPECT_TRUE(covered);
}

TEST_F(CopyFileTest, ForgetsWhatItIsNotToKeep) {
  Make();
  auto file = OpenCopyFile(path_, kBytes, false);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 0);
}

TEST_F(CopyFileTest, RefusesFilesThatAreNoCopy) {
  std::ofstream(path_) << std::string(10000, 'x');
  EXPECT_EQ(ErrorOf(kBytes, false), EEXIST);
  EXPECT_EQ(ErrorOf(kBytes, true), EEXIST);
  std::ifstream file(path_);
  EXPECT_EQ(file.get(), 'x');
}

TEST_F(CopyFileTest, RefusesSymbolicLinksAndDirectories) {
  ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_NE(ErrorOf(kBytes, false), 0);
  EXPECT_NE(OpenCopyFile(directory_, kBytes, false).status().error(), 0);
}

TEST_F(CopyFileTest, RefusesAnotherSize) {
  Make();
  EXPECT_EQ(ErrorOf(2 * kBytes, true), EINVAL);
  EXPECT_EQ(truncate(path_.c_str(), static_cast<off_t>(kBytes)), 0);
  EXPECT_EQ(ErrorOf(kBytes, true), EINVAL);
  EXPECT_EQ(ErrorOf(2 * kBytes, false), 0);
}

TEST_F(CopyFileTest, BelongsToOneSession) {
  auto file = OpenCopyFile(path_, kBytes, false);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ErrorOf(kBytes, true), EBUSY);
  EXPECT_EQ(ErrorOf(kBytes, false), EBUSY);
}

TEST_F(CopyFileTest, HolesReadAsZero) {
  Make();
  auto file = OpenCopyFile(path_, kBytes, true);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file.value()->Punch(0, kBytes), 0);
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 0);
}

}  // namespace
}  // namespace rocegw::far
