// SPDX-License-Identifier: Apache-2.0
// Files beside which a mounted file system outlives its command: which of them fit together.
#include "gateway/far/program/kept_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "gateway/far/files/blocks.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kSize = 4 * Blocks::kBytes;

class KeptNamesTest : public ::testing::Test {
 protected:
  KeptNamesTest() {
    char pattern[] = "/tmp/kept-names-XXXXXX";
    directory_ = mkdtemp(pattern);
    names_ = directory_ + "/names";
    placement_ = names_ + ".donors";
  }
  ~KeptNamesTest() override { std::filesystem::remove_all(directory_); }

  StatusOr<KeptNames> Open(uint64_t size = kSize) { return OpenKeptNames(names_, "", size); }
  int Error(uint64_t size = kSize) { return Open(size).status().error(); }

  // Leaves what a command leaves that was killed: a file with two pages in block 1, and the
  // placement.
  void Leave() {
    auto opened = Open();
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    EXPECT_FALSE(opened->space.placement);
    RecordWriter writer;
    NodeState root;
    root.mode = S_IFDIR | 0755;
    root.links = 2;
    writer.Node(1, root);
    NodeState file;
    file.mode = S_IFREG | 0644;
    file.links = 1;
    writer.Node(2, file);
    writer.Name(1, "file", 2);
    writer.Data(2, 8192, {});
    const BlockState block{1, 0x5};
    writer.Block(2, 0, &block);
    ASSERT_TRUE(opened->space.save(Encode(Saved())).ok());
    ASSERT_TRUE(opened->journal->Replace(writer.Take()).ok());
  }
  static Placement Saved() {
    Placement placement;
    placement.tenant = "default";
    placement.slab_bytes = kSize;
    placement.donors = {{"host", "7475", "", "", 1, 2}};
    placement.slabs.resize(1);
    placement.slabs[0].replicas = {{0, 1, 4096, 3, true}};
    return placement;
  }

  std::string directory_, names_, placement_;
};

TEST_F(KeptNamesTest, TheNextCommandHasThePlacementAndTheRangesOfData) {
  Leave();
  const auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  ASSERT_TRUE(opened.value().space.placement);
  EXPECT_EQ(*opened.value().space.placement, Saved());
  const std::vector<CopyFile::Range> data = {{Blocks::kBytes, Blocks::kBytes + 4096},
                                             {Blocks::kBytes + 8192, Blocks::kBytes + 12288}};
  EXPECT_EQ(opened.value().space.data, data);
}

TEST_F(KeptNamesTest, OnlyItsUserCanReadTheSecrets) {
  const mode_t mask = umask(0);
  Leave();
  umask(mask);
  struct stat state {};
  ASSERT_EQ(stat(placement_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  ASSERT_EQ(chmod(placement_.c_str(), 0640), 0);
  EXPECT_EQ(Error(), EPERM);
}

TEST_F(KeptNamesTest, AFileOfAnotherUserIsRefused) {
  Leave();
  if (chown(placement_.c_str(), 65534, 65534) != 0) return;  // only root can give files away
  EXPECT_EQ(Error(), EPERM);
}

TEST_F(KeptNamesTest, TwoCommandsAreRefused) {
  Leave();
  const auto first = Open();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Error(), EBUSY);
}

TEST_F(KeptNamesTest, OneFileWithoutTheOtherIsRefused) {
  Leave();
  std::filesystem::rename(names_, names_ + ".elsewhere");
  EXPECT_EQ(Error(), EEXIST);
  std::filesystem::rename(names_ + ".elsewhere", names_);
  std::filesystem::rename(placement_, placement_ + ".elsewhere");
  EXPECT_EQ(Error(), ENOENT);
}

TEST_F(KeptNamesTest, APlacementThatWasCutOffIsRefused) {
  Leave();
  const uint64_t whole = std::filesystem::file_size(placement_);
  const std::string saved = directory_ + "/saved";
  std::filesystem::copy_file(placement_, saved);
  for (uint64_t size = 0; size < whole; size++) {
    std::filesystem::copy_file(saved, placement_,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(placement_, size);
    EXPECT_EQ(Error(), EINVAL) << size;
    if (size + sizeof(uint64_t) >= whole) continue;  // the last count is zero
    std::filesystem::resize_file(placement_, whole);
    EXPECT_EQ(Error(), EINVAL) << size << " and zeroes";
  }
  std::filesystem::rename(saved, placement_);
  EXPECT_EQ(Error(), 0);
}

TEST_F(KeptNamesTest, ASaveThatWasInterruptedLeavesThePlacementBefore) {
  Leave();
  // The new file has not got its name yet.
  std::filesystem::copy_file(placement_, placement_ + ".new");
  std::filesystem::resize_file(placement_ + ".new", 50);
  const auto opened = Open();
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  EXPECT_EQ(*opened.value().space.placement, Saved());
  Placement changed = Saved();
  changed.slabs[0].replicas.clear();
  EXPECT_TRUE(opened.value().space.save(Encode(changed)).ok());
}

TEST_F(KeptNamesTest, FilesOfAnotherSizeAreRefused) {
  Leave();
  EXPECT_EQ(Error(2 * kSize), EINVAL);
}

TEST_F(KeptNamesTest, NeitherNamesNorDiskCopyIsRefused) {
  EXPECT_EQ(OpenKeptNames("", "", kSize).status().error(), EINVAL);
}

}  // namespace
}  // namespace rocegw::far
