// SPDX-License-Identifier: Apache-2.0
// Journal of the example kv_store: what a replica has after it starts again.
#include "examples/kv_store/store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kv {
namespace {

namespace fs = std::filesystem;

class KvStore : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "rocegw-kv-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string journal() const { return folder_ + "/journal"; }
  void Spoil(size_t at) const {
    std::fstream file(journal(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 1));
  }

  std::string folder_;
};

TEST_F(KvStore, ValuesSurviveARestart) {
  {
    Store store(folder_, true);
    ASSERT_EQ(store.Open(), "");
    EXPECT_TRUE(store.Write("a", {MakeVersion(1, 1), "old"}));
    EXPECT_TRUE(store.Write("a", {MakeVersion(5, 2), "new"}));
    EXPECT_TRUE(store.Write("b", {MakeVersion(2, 1), ""}));
  }
  Store store(folder_, true);
  ASSERT_EQ(store.Open(), "");
  EXPECT_EQ(store.Read("a")->text, "new");
  EXPECT_EQ(store.Read("b")->version, MakeVersion(2, 1));
  EXPECT_FALSE(store.Read("c").has_value());
  EXPECT_EQ(store.highest_count(), 5U);
}

TEST_F(KvStore, AnOlderVersionChangesNothing) {
  Store store(folder_, false);
  ASSERT_EQ(store.Open(), "");
  EXPECT_TRUE(store.Write("a", {MakeVersion(2, 1), "new"}));
  const uint64_t bytes = store.journal_bytes();
  EXPECT_TRUE(store.Write("a", {MakeVersion(1, 9), "old"}));
  EXPECT_TRUE(store.Write("a", {MakeVersion(2, 1), "other"}));
  EXPECT_EQ(store.Read("a")->text, "new");
  EXPECT_EQ(store.journal_bytes(), bytes);
}

TEST_F(KvStore, ALastRecordThatWasNotWrittenToItsEndIsCutOff) {
  uint64_t whole = 0;
  {
    Store store(folder_, false);
    ASSERT_EQ(store.Open(), "");
    store.Write("a", {MakeVersion(1, 1), "one"});
    whole = store.journal_bytes();
    store.Write("a", {MakeVersion(2, 1), "two"});
  }
  const fs::path complete = folder_ + "/complete";
  fs::copy_file(journal(), complete);
  for (uint64_t size = fs::file_size(complete) - 1; size >= whole; --size) {
    fs::copy_file(complete, journal(), fs::copy_options::overwrite_existing);
    fs::resize_file(journal(), size);
    Store store(folder_, false);
    ASSERT_EQ(store.Open(), "") << size;
    EXPECT_EQ(store.Read("a")->text, "one");
    EXPECT_EQ(fs::file_size(journal()), whole);
  }
}

TEST_F(KvStore, ADamagedRecordKeepsTheReplicaFromStarting) {
  uint64_t first = 0;
  {
    Store store(folder_, false);
    ASSERT_EQ(store.Open(), "");
    store.Write("a", {MakeVersion(1, 1), "one"});
    first = store.journal_bytes();
    store.Write("b", {MakeVersion(1, 1), "two"});
  }
  // A byte of the first record's message, behind its length.
  for (size_t at = sizeof(uint32_t); at < first; ++at) {
    Spoil(at);
    Store store(folder_, false);
    EXPECT_NE(store.Open().find("is damaged"), std::string::npos) << at;
    Spoil(at);
  }
}

TEST_F(KvStore, TheJournalIsWrittenAnew) {
  const std::string text(kLongestValue, 'x');
  {
    Store store(folder_, false);
    ASSERT_EQ(store.Open(), "");
    for (uint64_t i = 1; i <= 600; ++i) ASSERT_TRUE(store.Write("a", {MakeVersion(i, 1), text}));
    EXPECT_LT(store.journal_bytes(), Store::kCompactAt + kLongestMessage);
    EXPECT_EQ(store.journal_bytes(), fs::file_size(journal()));
  }
  Store store(folder_, false);
  ASSERT_EQ(store.Open(), "");
  EXPECT_EQ(store.Read("a")->version, MakeVersion(600, 1));
}

}  // namespace
}  // namespace kv
