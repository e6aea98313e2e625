// SPDX-License-Identifier: Apache-2.0
// The store in SQLite follows the contract; persistence between processes, and refusals of unusable
// files.
#include "controlplane/store/sqlite/sqlite_store.h"

#include <fstream>
#include <utility>

#include "tests/support/store/conformance.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using store::Operation;
using store::SqliteFileOptions;
using store::Store;

class SqliteHost : public StoreHost {
 public:
  store::Store& store() override { return *store_; }

 private:
  ScratchDirectory directory_;
  std::unique_ptr<Store> store_ =
      std::move(*store::OpenSqliteStore({.path = directory_.File("store.db"), .vfs = {}}));
};

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance,
                         ::testing::Values(StoreBackend{
                             "sqlite", [] { return std::make_unique<SqliteHost>(); }}),
                         BackendName);

class SqliteFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> Open() {
    auto store = store::OpenSqliteStore(options_);
    EXPECT_TRUE(store.ok()) << store.status().text();
    return store.ok() ? std::move(*store) : nullptr;
  }
  static store::Revision Write(Store& store, std::vector<Operation> operations) {
    auto result = store.Txn({{}, std::move(operations), {}});
    EXPECT_TRUE(result.ok()) << result.status().text();
    return result.ok() ? result->revision : 0;
  }
  // Returns the error of opening, which must fail.
  Status Refusal() {
    auto store = store::OpenSqliteStore(options_);
    EXPECT_FALSE(store.ok());
    return store.status();
  }
  void Fill(const std::string& text) { std::ofstream(options_.path, std::ios::binary) << text; }

  ScratchDirectory directory_;
  SqliteFileOptions options_{.path = directory_.File("store.db"), .vfs = {}};
};

TEST_F(SqliteFileTest, Reopened_HasEverything) {
  std::string uuid;
  store::Revision first = 0;
  store::Revision last = 0;
  {
    auto store = Open();
    uuid = store->uuid();
    first = Write(*store, {Operation::Put("a", "1"), Operation::Put("b", "1")});
    last = Write(*store, {Operation::Put("a", "2"), Operation::Delete("b")});
  }
  auto store = Open();
  EXPECT_EQ(store->uuid(), uuid);
  const auto now = store->Range({store::KeyRange::All()});
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now.value().revision, last);
  ASSERT_EQ(now.value().entries.size(), 1u);
  EXPECT_EQ(now.value().entries[0], (store::Entry{"a", "2", first, last, 0}));
  EXPECT_EQ(store->Range({store::KeyRange::All(), first})->entries.size(), 2u);
  store::BlockingWatch watch(*store, store::KeyRange::All(), first);
  EXPECT_EQ(watch.Next(std::chrono::seconds(5))->value().changes.size(), 2u);
  EXPECT_EQ(watch.Next(std::chrono::seconds(5))->value().revision, last);
}

TEST_F(SqliteFileTest, Reopened_LeasesOfADeadProcessHaveEnded) {
  auto store = Open();
  const auto lease = std::move(*store->NewLease(std::chrono::seconds(10), {}));
  const auto last =
      Write(*store, {Operation::Put("leader", "x", lease->id()), Operation::Put("stays", "x")});
  // The current files are what would remain if the process died.
  const std::string live = std::exchange(options_.path, directory_.File("left.db"));
  std::filesystem::copy_file(live, options_.path);
  std::filesystem::copy_file(live + "-wal", options_.path + "-wal");
  auto left = Open();
  EXPECT_FALSE(left->Get("leader")->has_value());
  EXPECT_TRUE(left->Get("stays")->has_value());
  store::BlockingWatch watch(*left, store::KeyRange::All(), last + 1);
  EXPECT_TRUE(watch.Next(std::chrono::seconds(5))->value().changes[0].deleted);
}

TEST_F(SqliteFileTest, Reopened_AfterCompactionOfAll_RevisionsGoOn) {
  store::Revision deleted = 0;
  {
    auto store = Open();
    Write(*store, {Operation::Put("a", "1")});
    deleted = Write(*store, {Operation::Delete("a")});
    ASSERT_TRUE(store->Compact(deleted).ok());
  }
  auto store = Open();
  EXPECT_EQ(store->Range({store::KeyRange::All()})->revision, deleted);
  EXPECT_EQ(store->Range({store::KeyRange::All(), deleted - 1}).status().error(),
            store::kCompacted);
  EXPECT_GT(Write(*store, {Operation::Put("a", "2")}), deleted);
}

TEST_F(SqliteFileTest, Compacted_RowsAreReallyGone) {
  constexpr int kVersions = 1500;  // several sweeps
  {
    auto store = Open();
    for (int i = 0; i < kVersions; ++i) {
      Write(*store, {Operation::Put("a", std::to_string(i)), Operation::Put("b", "x")});
    }
    const auto newest = Write(*store, {Operation::Delete("b")});
    ASSERT_TRUE(store->Compact(newest).ok());
    // The writer sweeps a part with each group; these groups suffice.
    for (int i = 0; i < 12; ++i) Write(*store, {Operation::Put("later", std::to_string(i))});
    EXPECT_EQ(store->Get("a")->value().value, std::to_string(kVersions - 1));
    EXPECT_FALSE(store->Get("b")->has_value());
  }
  auto file = store::OpenSqliteFile(options_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->swept, file->compacted);
  EXPECT_EQ(
      file->database->Number("SELECT count(*) FROM changes WHERE key = CAST('a' AS BLOB)").value(),
      1);
  EXPECT_EQ(
      file->database->Number("SELECT count(*) FROM changes WHERE key = CAST('b' AS BLOB)").value(),
      0);
}

TEST_F(SqliteFileTest, Watch_FurtherBackThanMemory_ReadsTheFile) {
  std::vector<store::Revision> revisions;
  {
    auto store = Open();
    for (int i = 0; i < 1200; ++i) {
      revisions.push_back(Write(*store, {Operation::Put("p/a", "x"), Operation::Put("q", "x")}));
    }
  }
  auto store = Open();
  store::BlockingWatch watch(*store, store::KeyRange::Prefix("p/"), revisions.front());
  for (const auto revision : revisions) {
    const auto next = watch.Next(std::chrono::seconds(5));
    ASSERT_TRUE(next.ok() && next.value().has_value());
    ASSERT_EQ(next.value()->revision, revision);
    ASSERT_EQ(next.value()->changes.size(), 1u);
  }
  const auto live = Write(*store, {Operation::Put("p/b", "x")});
  EXPECT_EQ(watch.Next(std::chrono::seconds(5))->value().revision, live);
}

TEST_F(SqliteFileTest, Durability_IsFull) {
  auto store = Open();
  auto other = store::OpenSqliteFile({.path = directory_.File("other.db"), .vfs = {}});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->database->Number("PRAGMA synchronous").value(), 2);
  EXPECT_EQ(other->database->Text("PRAGMA journal_mode").value(), "wal");
}

TEST_F(SqliteFileTest, Writer_KeepsTheIndexInMemory) {
  auto file = store::OpenSqliteFile(options_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->database->Number("PRAGMA cache_size").value(), -32768);
}

TEST_F(SqliteFileTest, SecondProcess_IsToldWhoHasIt) {
  auto store = Open();
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), store::kInUse);
  EXPECT_NE(refusal.text().find("in use by process " + std::to_string(getpid())), std::string::npos)
      << refusal.text();
}

TEST_F(SqliteFileTest, FolderMissing_IsSaid) {
  options_.path = directory_.File("no/such/store.db");
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), ENOENT);
  EXPECT_NE(refusal.text().find(options_.path), std::string::npos) << refusal.text();
}

TEST_F(SqliteFileTest, NoDatabase_IsRefusedAndLeftAlone) {
  const std::string text(5000, 'x');
  Fill(text);
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), store::kDamaged);
  EXPECT_NE(refusal.text().find("is no SQLite file"), std::string::npos) << refusal.text();
  std::ifstream file(options_.path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), text);
}

TEST_F(SqliteFileTest, DatabaseOfAnother_IsRefused) {
  {
    auto database =
        store::SqliteDatabase::Open(options_.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
    ASSERT_TRUE((*database)->Execute("CREATE TABLE songs (name TEXT)").ok());
  }
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), store::kDamaged);
  EXPECT_NE(refusal.text().find("belongs to another program"), std::string::npos) << refusal.text();
}

TEST_F(SqliteFileTest, NewerFormat_IsRefused) {
  Open();
  {
    auto database = store::SqliteDatabase::Open(options_.path, SQLITE_OPEN_READWRITE, "");
    ASSERT_TRUE((*database)->Execute("PRAGMA user_version = 7").ok());
  }
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), store::kDamaged);
  EXPECT_NE(refusal.text().find("has format 7"), std::string::npos) << refusal.text();
}

TEST_F(SqliteFileTest, PageOverwritten_IsRefused) {
  {
    auto store = Open();
    for (int i = 0; i < 200; ++i) {
      Write(*store, {Operation::Put("key" + std::to_string(i), std::string(500, 'v'))});
    }
  }
  // Overwrites every page except the first: a damaged tree.
  const auto size = std::filesystem::file_size(options_.path);
  std::fstream file(options_.path, std::ios::in | std::ios::out | std::ios::binary);
  for (size_t at = 4096; at < size; at += 4096) {
    file.seekp(static_cast<std::streamoff>(at));
    file << std::string(200, '\x5a');
  }
  file.close();
  const Status refusal = Refusal();
  EXPECT_EQ(refusal.error(), store::kDamaged);
  EXPECT_NE(refusal.text().find("restore it from a backup"), std::string::npos) << refusal.text();
}

TEST_F(SqliteFileTest, EmptyFileOfAnInterruptedStart_BecomesAStore) {
  Fill("");
  EXPECT_EQ(Write(*Open(), {Operation::Put("a", "1")}), 1);
}

TEST_F(SqliteFileTest, InterruptedBeforeItsTables_BecomesAStore) {
  {
    auto database =
        store::SqliteDatabase::Open(options_.path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
    ASSERT_TRUE((*database)->Execute("PRAGMA journal_mode = WAL").ok());
  }
  EXPECT_EQ(Write(*Open(), {Operation::Put("a", "1")}), 1);
}

}  // namespace
}  // namespace rocegw::testing
