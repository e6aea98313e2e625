// SPDX-License-Identifier: Apache-2.0
// Records and journals of files that outlive their server.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gateway/far/files/blocks.h"
#include "gateway/far/files/kept/journal.h"
#include "gateway/far/files/kept/records.h"

namespace rocegw::far {
namespace {

NodeState StateOf(mode_t mode, uint32_t links) {
  NodeState state;
  state.mode = mode;
  state.links = links;
  return state;
}

TEST(KeptRecords, LaterRecordsReplaceEarlierOnes) {
  RecordWriter writer;
  NodeState root = StateOf(S_IFDIR | 0755, 2);
  root.parent = 1;
  NodeState file = StateOf(S_IFREG | 0640, 1);
  file.uid = 5;
  file.target = "elsewhere";
  file.changed = {7, 8};
  const BlockState block{3, 0x8001};
  writer.Node(1, root);
  writer.Node(2, StateOf(S_IFREG, 1));
  writer.Node(2, file);
  writer.Name(1, "old", 2);
  writer.Name(1, "new", 2);
  writer.Name(1, "old", 0);
  writer.Data(2, 100, {1, 2});
  writer.Data(2, 200, {3, 4});
  writer.Block(2, 9, &block);
  writer.Block(2, 10, &block);
  writer.Block(2, 10, nullptr);
  KeptFiles kept;
  ASSERT_TRUE(kept.Apply(writer.Take()));
  EXPECT_TRUE(writer.empty());
  ASSERT_TRUE(kept.Finish(1));
  EXPECT_EQ(kept.nodes.at(1).names, (NodeNames{{"new", 2}}));
  EXPECT_EQ(kept.nodes.at(2).state.mode, static_cast<mode_t>(S_IFREG | 0640));
  EXPECT_EQ(kept.nodes.at(2).state.uid, 5u);
  EXPECT_EQ(kept.nodes.at(2).state.target, "elsewhere");
  EXPECT_EQ(kept.nodes.at(2).state.changed.tv_nsec, 8);
  EXPECT_EQ(kept.data.at(2).size, 200u);
  EXPECT_EQ(kept.data.at(2).modified.tv_sec, 3);
  ASSERT_EQ(kept.data.at(2).blocks.size(), 1u);
  EXPECT_EQ(kept.data.at(2).blocks.at(9).block, 3u);
  EXPECT_EQ(kept.data.at(2).blocks.at(9).written, 0x8001);
}

TEST(KeptRecords, FilesThatWereUnlinkedWhileOpenAreDropped) {
  RecordWriter writer;
  writer.Node(1, StateOf(S_IFDIR, 2));
  writer.Node(2, StateOf(S_IFREG, 0));
  writer.Data(2, 5, {});
  writer.Node(3, StateOf(S_IFREG, 1));
  writer.Name(1, "a", 3);
  writer.Data(4, 5, {});
  KeptFiles kept;
  ASSERT_TRUE(kept.Apply(writer.Take()));
  ASSERT_TRUE(kept.Finish(1));
  EXPECT_EQ(kept.nodes.size(), 2u);
  EXPECT_TRUE(kept.data.empty());
}

TEST(KeptRecords, WhatIsNoTreeIsRefused) {
  KeptFiles empty;
  EXPECT_FALSE(empty.Finish(1));
  RecordWriter writer;
  writer.Node(1, StateOf(S_IFDIR, 2));
  writer.Name(1, "a", 2);
  const std::string text = writer.Take();
  KeptFiles nowhere;
  ASSERT_TRUE(nowhere.Apply(text));
  EXPECT_FALSE(nowhere.Finish(1));
  for (size_t cut = 1; cut < text.size(); cut++) {
    KeptFiles kept;
    // The text of the first record alone is whole.
    const bool whole = kept.Apply(text.substr(0, cut));
    EXPECT_EQ(whole, whole && kept.nodes.contains(1) && kept.nodes.at(1).names.empty()) << cut;
  }
  KeptFiles other;
  EXPECT_FALSE(other.Apply("no records at all"));
}

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    char pattern[] = "/tmp/kept-journal-XXXXXX";
    directory_ = mkdtemp(pattern);
    path_ = directory_ + "/names";
  }
  ~JournalTest() override { std::filesystem::remove_all(directory_); }

  StatusOr<std::unique_ptr<Journal>> Open(uint64_t bytes = 1 << 20) {
    return Journal::Open(path_, bytes, &records_, &exists_);
  }

  std::string directory_, path_, records_;
  bool exists_ = false;
};

TEST_F(JournalTest, CommitsAreThereAgain) {
  {
    auto journal = Open();
    ASSERT_TRUE(journal.ok()) << journal.status().text();
    EXPECT_FALSE(exists_);
    ASSERT_TRUE(journal.value()->Replace("first ").ok());
    ASSERT_TRUE(journal.value()->Append("second ").ok());
    ASSERT_TRUE(journal.value()->Append("third").ok());
    EXPECT_EQ(Open().status().error(), EBUSY);
  }
  {
    auto journal = Open();
    ASSERT_TRUE(journal.ok());
    EXPECT_TRUE(exists_);
    EXPECT_EQ(records_, "first second third");
    ASSERT_TRUE(journal.value()->Replace("new ").ok());
    ASSERT_TRUE(journal.value()->Append("more").ok());
  }
  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(records_, "new more");
  EXPECT_EQ(Open(2 << 20).status().error(), EINVAL);
}

TEST_F(JournalTest, ACommitThatWasCutOffIsNotThere) {
  uint64_t before = 0;
  {
    auto journal = Open();
    ASSERT_TRUE(journal.value()->Replace("first").ok());
    before = journal.value()->size();
    ASSERT_TRUE(journal.value()->Append("and the second one").ok());
  }
  const uint64_t whole = std::filesystem::file_size(path_);
  const std::string saved = path_ + ".saved";
  std::filesystem::copy_file(path_, saved);
  for (uint64_t size = before; size < whole; size++) {
    std::filesystem::copy_file(saved, path_, std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(path_, size);
    // The length of the file may be on the disk before its data is.
    if (size % 2 == 0) std::filesystem::resize_file(path_, whole);
    auto journal = Open();
    ASSERT_TRUE(journal.ok());
    EXPECT_EQ(records_, "first") << size;
    EXPECT_EQ(journal.value()->size(), before);
    ASSERT_TRUE(journal.value()->Append(" 2").ok());
    journal.value().reset();
    ASSERT_TRUE(Open().ok());
    EXPECT_EQ(records_, "first 2") << size;
  }
}

TEST_F(JournalTest, OtherFilesAreRefused) {
  std::filesystem::copy_file("/proc/self/exe", path_);
  EXPECT_EQ(Open().status().error(), EINVAL);
}

TEST(KeptBlocks, ABlockIsFreeWhenACommitNamesItNoMore) {
  Blocks blocks(2);
  blocks.KeepFreed();
  ASSERT_EQ(blocks.Take(0), 0u);
  EXPECT_FALSE(blocks.TakeExactly(0));
  EXPECT_TRUE(blocks.TakeExactly(1));
  EXPECT_FALSE(blocks.TakeExactly(2));
  blocks.Free(0);
  EXPECT_EQ(blocks.free_count(), 0u);
  EXPECT_TRUE(blocks.has_kept());
  // A commit that began before does not free it.
  blocks.FreedCommitted();
  EXPECT_EQ(blocks.free_count(), 0u);
  blocks.FreedRecorded();
  blocks.Free(1);
  blocks.FreedCommitted();
  EXPECT_EQ(blocks.free_count(), 1u);
  EXPECT_EQ(blocks.Take(1), 0u);
  EXPECT_TRUE(blocks.has_kept());
}

}  // namespace
}  // namespace rocegw::far
