// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/tree.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace rocegw::far {
namespace {

constexpr timespec kTreeTime{1000, 0};
constexpr uint64_t kRoot = Tree::kRoot;

NewNode Node(mode_t mode) {
  NewNode node;
  node.mode = mode;
  return node;
}

class TreeTest : public ::testing::Test {
 protected:
  uint64_t Make(uint64_t parent, const char* name, mode_t mode) {
    Inode* made = nullptr;
    EXPECT_EQ(tree_.Make(parent, name, Node(mode), kTreeTime, &made), 0) << name;
    return made != nullptr ? made->number : 0;
  }
  uint64_t Number(uint64_t parent, const char* name) {
    int error = 0;
    const Inode* inode = tree_.Lookup(parent, name, &error);
    return inode != nullptr ? inode->number : 0;
  }
  int Rename(uint64_t from, const char* name, uint64_t to, const char* new_name,
             Tree::RenameKind kind = Tree::RenameKind::kReplace) {
    return tree_.Rename(from, name, to, new_name, kind, kTreeTime);
  }

  Tree tree_{8, Node(S_IFDIR | 0755), kTreeTime};
};

TEST_F(TreeTest, AnUnlinkedFileLivesAsLongAsTheKernelKnowsIt) {
  const uint64_t file = Make(kRoot, "file", S_IFREG | 0600);
  tree_.Reference(*tree_.Find(file));
  ASSERT_EQ(tree_.Unlink(kRoot, "file", kTreeTime), 0);
  EXPECT_EQ(Number(kRoot, "file"), 0u);
  ASSERT_NE(tree_.Find(file), nullptr);
  EXPECT_EQ(tree_.Find(file)->links, 0u);
  tree_.Forget(file, 1);
  EXPECT_EQ(tree_.Find(file), nullptr);
}

TEST_F(TreeTest, LinksAreCounted) {
  const uint64_t file = Make(kRoot, "file", S_IFREG | 0600);
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0700);
  ASSERT_EQ(tree_.Link(file, directory, "link", kTreeTime), 0);
  EXPECT_EQ(tree_.Link(file, directory, "link", kTreeTime), -EEXIST);
  EXPECT_EQ(tree_.Link(directory, kRoot, "link", kTreeTime), -EPERM);
  EXPECT_EQ(tree_.Find(file)->links, 2u);
  EXPECT_EQ(tree_.Find(kRoot)->links, 3u);
  ASSERT_EQ(tree_.Unlink(kRoot, "file", kTreeTime), 0);
  EXPECT_EQ(Number(directory, "link"), file);
}

TEST_F(TreeTest, OnlyEmptyDirectoriesAreRemoved) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 0700);
  Make(directory, "file", S_IFREG | 0600);
  EXPECT_EQ(tree_.RemoveDirectory(kRoot, "directory", kTreeTime), -ENOTEMPTY);
  EXPECT_EQ(tree_.RemoveDirectory(directory, "file", kTreeTime), -ENOTDIR);
  EXPECT_EQ(tree_.Unlink(kRoot, "directory", kTreeTime), -EISDIR);
  ASSERT_EQ(tree_.Unlink(directory, "file", kTreeTime), 0);
  ASSERT_EQ(tree_.RemoveDirectory(kRoot, "directory", kTreeTime), 0);
  EXPECT_EQ(tree_.Find(directory), nullptr);
  EXPECT_EQ(tree_.Find(kRoot)->links, 2u);
  EXPECT_EQ(tree_.names(), 0u);
}

TEST_F(TreeTest, ARenameReplacesTheOldNode) {
  const uint64_t one = Make(kRoot, "one", S_IFREG | 0600);
  const uint64_t two = Make(kRoot, "two", S_IFREG | 0600);
  EXPECT_EQ(Rename(kRoot, "one", kRoot, "two", Tree::RenameKind::kNoReplace), -EEXIST);
  ASSERT_EQ(Rename(kRoot, "one", kRoot, "two"), 0);
  EXPECT_EQ(Number(kRoot, "two"), one);
  EXPECT_EQ(Number(kRoot, "one"), 0u);
  EXPECT_EQ(tree_.Find(two), nullptr);
}

TEST_F(TreeTest, ARenameMovesDirectoriesButNotIntoThemselves) {
  const uint64_t one = Make(kRoot, "one", S_IFDIR | 0700);
  const uint64_t two = Make(one, "two", S_IFDIR | 0700);
  EXPECT_EQ(Rename(kRoot, "one", two, "one"), -EINVAL);
  ASSERT_EQ(Rename(one, "two", kRoot, "two"), 0);
  EXPECT_EQ(tree_.Find(two)->parent, kRoot);
  EXPECT_EQ(tree_.Find(one)->links, 2u);
  EXPECT_EQ(tree_.Find(kRoot)->links, 4u);
}

TEST_F(TreeTest, ARenameExchangesNodes) {
  const uint64_t one = Make(kRoot, "one", S_IFDIR | 0700);
  const uint64_t file = Make(one, "file", S_IFREG | 0600);
  const uint64_t two = Make(kRoot, "two", S_IFDIR | 0700);
  ASSERT_EQ(Rename(one, "file", kRoot, "two", Tree::RenameKind::kExchange), 0);
  EXPECT_EQ(Number(one, "file"), two);
  EXPECT_EQ(Number(kRoot, "two"), file);
  EXPECT_EQ(tree_.Find(two)->parent, one);
  EXPECT_EQ(tree_.Find(one)->links, 3u);
  EXPECT_EQ(tree_.Find(kRoot)->links, 3u);
}

TEST_F(TreeTest, TheNumberOfNamesIsBounded) {
  for (int number = 0; number < 8; number++) {
    Make(kRoot, std::to_string(number).c_str(), S_IFREG | 0600);
  }
  Inode* made = nullptr;
  EXPECT_EQ(tree_.Make(kRoot, "9", Node(S_IFREG | 0600), kTreeTime, &made), -ENOSPC);
  EXPECT_EQ(Rename(kRoot, "7", kRoot, "9"), 0);
  EXPECT_EQ(tree_.Make(kRoot, std::string(256, 'x').c_str(), Node(S_IFREG), kTreeTime, &made),
            -ENAMETOOLONG);
}

TEST_F(TreeTest, ASetGroupDirectoryHandsItsGroupDown) {
  const uint64_t directory = Make(kRoot, "directory", S_IFDIR | 02770);
  tree_.Find(directory)->gid = 42;
  const uint64_t below = Make(directory, "below", S_IFDIR | 0700);
  EXPECT_EQ(tree_.Find(below)->gid, 42u);
  EXPECT_EQ(tree_.Find(below)->mode, S_IFDIR | 02700u);
}

TEST(TreeTargets, LongTargetsOfSymbolicLinksCountAsNames) {
  NewNode root;
  root.mode = S_IFDIR | 0755;
  Tree tree(20, root, {});
  NewNode link;
  link.mode = S_IFLNK | 0777;
  link.target = std::string(4000, 'x');
  Inode* made = nullptr;
  ASSERT_EQ(tree.Make(Tree::kRoot, "a", link, {}, &made), 0);
  EXPECT_EQ(tree.names(), 1 + 4000 / Tree::kTargetBytes);
  EXPECT_EQ(tree.Make(Tree::kRoot, "b", link, {}, &made), -ENOSPC);
  EXPECT_EQ(tree.Unlink(Tree::kRoot, "a", {}), 0);
  EXPECT_EQ(tree.names(), 0u);
  EXPECT_EQ(tree.Make(Tree::kRoot, "b", link, {}, &made), 0);
}

}  // namespace
}  // namespace rocegw::far
