// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/listing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rocegw::far {
namespace {

class ListingTest : public ::testing::Test {
 protected:
  ListingTest() : tree_(100000, Directory(), {}) {}

  static NewNode Directory() {
    NewNode node;
    node.mode = S_IFDIR | 0755;
    return node;
  }
  static std::string NameOf(int number) { return "file" + std::to_string(100000 + number); }
  void Make(int number) {
    NewNode node;
    node.mode = S_IFREG | 0644;
    Inode* made = nullptr;
    ASSERT_EQ(tree_.Make(Tree::kRoot, NameOf(number).c_str(), node, {}, &made), 0);
  }
  std::vector<Listing::Entry> Read(Listing& listing, uint64_t offset) {
    std::vector<Listing::Entry> entries;
    locks_ = 1;
    while (!listing.Read(tree_, offset, &entries)) locks_++;
    return entries;
  }
  // All names from the offset on, a reply after the other.
  std::vector<std::string> ReadAll(Listing& listing, uint64_t offset = 0) {
    std::vector<std::string> names;
    for (;;) {
      const auto entries = Read(listing, offset);
      if (entries.empty()) return names;
      EXPECT_LE(entries.size(), Listing::kMostNames + 2);
      for (const Listing::Entry& entry : entries) names.push_back(entry.name);
      offset = entries.back().offset;
    }
  }

  Tree tree_;
  int locks_ = 0;  // that the last reply took
};

TEST_F(ListingTest, EmptyDirectoryHasItselfAndItsParent) {
  Listing listing(Tree::kRoot);
  EXPECT_EQ(ReadAll(listing), (std::vector<std::string>{".", ".."}));
  EXPECT_EQ(ReadAll(listing), (std::vector<std::string>{".", ".."})) << "from the beginning again";
}

TEST_F(ListingTest, NamesEachNameOnceInManyReplies) {
  for (int number = 0; number < 1000; number++) Make(number);
  Listing listing(Tree::kRoot);
  const std::vector<std::string> names = ReadAll(listing);
  ASSERT_EQ(names.size(), 1002u);
  for (int number = 0; number < 1000; number++) {
    EXPECT_EQ(names[static_cast<size_t>(number) + 2], NameOf(number));
  }
}

TEST_F(ListingTest, GoesOnWithinTheLastReplyWhenTheProgramTookOnlySomeOfIt) {
  for (int number = 0; number < 600; number++) Make(number);
  Listing listing(Tree::kRoot);
  const auto entries = Read(listing, 2);
  const auto again = Read(listing, entries[99].offset);
  EXPECT_EQ(again[0].name, NameOf(100));
  EXPECT_EQ(again[0].offset, entries[100].offset);
  EXPECT_EQ(ReadAll(listing, again[0].offset).front(), NameOf(101));
}

TEST_F(ListingTest, RemovedAndNewNamesHarmNoOther) {
  for (int number = 0; number < 600; number += 2) Make(number);
  Listing listing(Tree::kRoot);
  const auto entries = Read(listing, 2);
  // The name that the listing would go on from goes, and so does every other one behind it.
  EXPECT_EQ(tree_.Unlink(Tree::kRoot, entries.back().name.c_str(), {}), 0);
  EXPECT_EQ(tree_.Unlink(Tree::kRoot, NameOf(598).c_str(), {}), 0);
  Make(1);
  Make(599);
  const std::vector<std::string> rest = ReadAll(listing, entries.back().offset);
  EXPECT_EQ(entries.size(), Listing::kMostNames);
  EXPECT_EQ(rest.size(), 300 - Listing::kMostNames);
  EXPECT_EQ(rest.back(), NameOf(599));
}

TEST_F(ListingTest, FarPlacesAreFoundAPieceUnderEachLock) {
  for (int number = 0; number < 2000; number++) Make(number);
  Listing listing(Tree::kRoot);
  EXPECT_EQ(Read(listing, 2 + 1500)[0].name, NameOf(1500));
  EXPECT_GE(locks_, 1500 / static_cast<int>(Listing::kMostNames));
  EXPECT_EQ(Read(listing, 2 + 7)[0].name, NameOf(7));
  EXPECT_TRUE(Read(listing, 1000000).empty());
}

TEST_F(ListingTest, RemovedDirectoryIsEmpty) {
  Inode* made = nullptr;
  ASSERT_EQ(tree_.Make(Tree::kRoot, "d", Directory(), {}, &made), 0);
  Listing listing(made->number);
  ASSERT_EQ(tree_.RemoveDirectory(Tree::kRoot, "d", {}), 0);
  EXPECT_TRUE(ReadAll(listing).empty());
}

}  // namespace
}  // namespace rocegw::far
