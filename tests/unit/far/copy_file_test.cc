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
constexpr uint64_t kBytes = 1024 * kPage;

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
  int ErrorOf(uint64_t bytes, CopyUse use) {
    return OpenCopyFile(path_, bytes, use).status().error();
  }
  // A copy with one page of sevens at page 5.
  void Make() {
    auto file = OpenCopyFile(path_, kBytes, CopyUse::kStart);
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
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kContinue);
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
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kStart);
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 0);
}

TEST_F(CopyFileTest, RefusesFilesThatAreNoCopy) {
  std::ofstream(path_) << std::string(10000, 'x');
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kStart), EEXIST);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EEXIST);
  std::ifstream file(path_);
  EXPECT_EQ(file.get(), 'x');
}

TEST_F(CopyFileTest, RefusesSymbolicLinksAndDirectories) {
  ASSERT_EQ(symlink("/etc/passwd", path_.c_str()), 0);
  EXPECT_NE(ErrorOf(kBytes, CopyUse::kStart), 0);
  EXPECT_NE(OpenCopyFile(directory_, kBytes, CopyUse::kStart).status().error(), 0);
}

TEST_F(CopyFileTest, RefusesAnotherSize) {
  Make();
  EXPECT_EQ(ErrorOf(2 * kBytes, CopyUse::kContinue), EINVAL);
  EXPECT_EQ(truncate(path_.c_str(), static_cast<off_t>(kBytes)), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EINVAL);
  EXPECT_EQ(ErrorOf(2 * kBytes, CopyUse::kStart), 0);
}

TEST_F(CopyFileTest, BelongsToOneSession) {
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kStart);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EBUSY);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kStart), EBUSY);
}

TEST_F(CopyFileTest, TemporaryCopyDoesNotReplaceOneThatIsKept) {
  Make();
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kTemporary), EEXIST);
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kContinue);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 7);
}

TEST_F(CopyFileTest, TemporaryCopyIsReplacedButNotContinued) {
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kTemporary), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EINVAL);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kTemporary), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kStart), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), 0);
}

TEST_F(CopyFileTest, FileWhoseCreationWasInterruptedIsTaken) {
  std::ofstream{path_};
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(kBytes + kPage)), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), 0);
}

TEST_F(CopyFileTest, FileThatBeginsWithZeroesIsNotTaken) {
  std::ofstream(path_) << std::string(2 * kPage, '\0') << "data";
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EEXIST);
}

TEST_F(CopyFileTest, OthersGetNoPermissions) {
  std::ofstream{path_};
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  ASSERT_EQ(ErrorOf(kBytes, CopyUse::kStart), 0);
  struct stat state {};
  ASSERT_EQ(stat(path_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0600u);
}

TEST_F(CopyFileTest, RefusesFilesWithFurtherNames) {
  Make();
  const std::string other = path_ + ".link";
  ASSERT_EQ(link(path_.c_str(), other.c_str()), 0);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), EPERM);
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kStart), EPERM);
  unlink(other.c_str());
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), 0);
}

TEST_F(CopyFileTest, RefusesFilesOfOtherUsers) {
  Make();
  // Only root can give a file away.
  const bool given = chown(path_.c_str(), 65534, 65534) == 0;
  EXPECT_EQ(ErrorOf(kBytes, CopyUse::kContinue), given ? EPERM : 0);
}

TEST_F(CopyFileTest, ListOfLostPagesIsKeptUntilTheNextOne) {
  Make();
  std::vector<CopyFile::Range> lost;
  std::vector<CopyFile::Range> odd, even;
  for (uint64_t at = 0; at < kBytes; at += 2 * kPage) {
    even.push_back({at, at + kPage});
    odd.push_back({at + kPage, at + 2 * kPage});
  }
  const std::vector<CopyFile::Range> lists[] = {
      {{kPage, 3 * kPage}, {60 * kPage, kBytes}}, {}, even, odd, {{0, kPage}}, even};
  for (const auto& list : lists) {
    auto file = OpenCopyFile(path_, kBytes, CopyUse::kContinue);
    ASSERT_TRUE(file.ok()) << file.status().text();
    ASSERT_EQ(file.value()->SetLost(list), 0);
    file.value().reset();
    file = OpenCopyFile(path_, kBytes, CopyUse::kContinue);
    ASSERT_TRUE(file.ok()) << file.status().text();
    EXPECT_EQ(file.value()->FindLost(lost), 0);
    EXPECT_EQ(lost, list);
    EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
    EXPECT_EQ(page()[0], 7);
    EXPECT_EQ(file.value()->FindData([](uint64_t, uint64_t end) { EXPECT_LE(end, kBytes); }), 0);
  }
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kStart);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file.value()->FindLost(lost), 0);
  EXPECT_TRUE(lost.empty());
}

TEST_F(CopyFileTest, HolesReadAsZero) {
  Make();
  auto file = OpenCopyFile(path_, kBytes, CopyUse::kContinue);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file.value()->Punch(0, kBytes), 0);
  EXPECT_EQ(file.value()->Read(page(), kPage, 5 * kPage), static_cast<ssize_t>(kPage));
  EXPECT_EQ(page()[0], 0);
}

}  // namespace
}  // namespace rocegw::far
