// SPDX-License-Identifier: Apache-2.0
// Crash guarantees of the SQLite store: no acknowledged transaction is lost, and none is half
// applied. Processes are killed, and power cuts are simulated (tests/support/store/crash_vfs.h).
// With synchronous=NORMAL the power cuts must find losses, which shows that the test detects them.
//
// Repetitions: ROCEGW_STORE_KILLS and ROCEGW_STORE_CUTS, default 200 each, which takes some
// seconds.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/store/sqlite/sqlite_store.h"
#include "tests/support/random.h"
#include "tests/support/store/crash_vfs.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::testing {
namespace {

using store::KeyRange;
using store::Operation;
using store::SqliteFileOptions;
using store::Store;

constexpr int kWriters = 4;
constexpr int kKeys = 3;                   // changed together by each transaction
constexpr store::Revision kHistory = 300;  // kept by compactions

int Times(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

std::string KeyOf(int writer, int key) {
  return "w" + std::to_string(writer) + "/" + std::to_string(key);
}

// Runs the writer's n-th transaction, which sets all its keys to n. Returns its revision; 0: not
// acknowledged.
store::Revision WriteOne(Store& store, int writer, int n) {
  std::vector<Operation> operations;
  operations.reserve(kKeys);
  for (int key = 0; key < kKeys; ++key) {
    operations.push_back(
        Operation::Put(KeyOf(writer, key), std::to_string(n) + std::string(200, '.')));
  }
  const auto result = store.Txn({{}, std::move(operations), {}});
  return result.ok() ? result.value().revision : 0;
}

// Last number of each writer in a store, 0: none. Half a transaction fails the test.
using Numbers = std::array<int, kWriters>;
Numbers NumbersIn(Store& store) {
  Numbers numbers = {};
  for (int writer = 0; writer < kWriters; ++writer) {
    const auto result = store.Range({KeyRange::Prefix("w" + std::to_string(writer) + "/")});
    EXPECT_TRUE(result.ok()) << result.status().text();
    if (!result.ok() || result.value().entries.empty()) continue;
    const auto& entries = result.value().entries;
    EXPECT_EQ(entries.size(), size_t{kKeys});
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.value, entries[0].value) << "half a transaction in " << entry.key;
      EXPECT_EQ(entry.mod_revision, entries[0].mod_revision);
    }
    numbers[static_cast<size_t>(writer)] = std::stoi(entries[0].value);
  }
  return numbers;
}

// Checks that the history is complete: each transaction with all its keys, and no revision missing.
void CheckHistory(Store& store) {
  const auto newest = store.Range({KeyRange::Key("none")});
  ASSERT_TRUE(newest.ok());
  store::Revision expected = std::max<store::Revision>(1, newest.value().revision - kHistory + 1);
  auto watch = store.NewWatch(KeyRange::All(), expected, {});
  ASSERT_TRUE(watch.ok());
  while (expected <= newest.value().revision) {
    auto next = (*watch)->TryNext();
    ASSERT_TRUE(next.ok()) << next.status().text();
    ASSERT_TRUE(next->has_value());
    ASSERT_EQ((*next)->revision, expected++);
    ASSERT_EQ((*next)->changes.size(), size_t{kKeys});
  }
}

// ---- Killed processes

struct Acknowledged {
  int writer;
  int number;
};

[[noreturn]] void WriteUntilKilled(const SqliteFileOptions& options, int pipe) {
  auto opened = store::OpenSqliteStore(options);
  if (!opened.ok()) _exit(3);
  Store& store = **opened;
  const Numbers begin = NumbersIn(store);
  std::vector<std::thread> writers;
  writers.reserve(kWriters);
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int n = begin[static_cast<size_t>(writer)] + 1;; ++n) {
        const store::Revision revision = WriteOne(store, writer, n);
        if (revision == 0) _exit(4);
        if (n % 64 == 0 && revision > 2 * kHistory)
          static_cast<void>(store.Compact(revision - kHistory));
        const Acknowledged record{writer, n};
        if (::write(pipe, &record, sizeof(record)) != sizeof(record)) _exit(5);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  _exit(0);
}

TEST(Durability, ProcessKilled_NothingAcknowledgedIsLost) {
  const int kills = Times("ROCEGW_STORE_KILLS", 200);
  const ScratchDirectory directory;
  // Frequent checkpoints, so that kills hit them.
  const SqliteFileOptions options{
      .path = directory.File("store.db"), .vfs = {}, .checkpoint_pages = 40};
  Random random(TestSeed(11));
  Numbers acknowledged = {};
  for (int kill = 0; kill < kills; ++kill) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(ends[0]);
      WriteUntilKilled(options, ends[1]);
    }
    ::close(ends[1]);
    const auto note = [&] {
      Acknowledged record = {};
      if (::read(ends[0], &record, sizeof(record)) != sizeof(record)) return false;
      auto& last = acknowledged[static_cast<size_t>(record.writer)];
      EXPECT_EQ(record.number, last + 1) << "went on from what it had";
      last = record.number;
      return true;
    };
    for (size_t left = random.Below(120); left > 0 && note(); --left) {
    }
    ::kill(child, SIGKILL);
    while (note()) {
    }
    ::close(ends[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself: " << WEXITSTATUS(status);

    auto store = store::OpenSqliteStore(options);
    ASSERT_TRUE(store.ok()) << store.status().text();
    const Numbers found = NumbersIn(**store);
    for (size_t writer = 0; writer < kWriters; ++writer) {
      ASSERT_GE(found[writer], acknowledged[writer]) << "lost, after kill " << kill;
      ASSERT_LE(found[writer], acknowledged[writer] + 1) << "more than was asked for";
    }
    acknowledged = found;
    CheckHistory(**store);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
}

// ---- Cut power

struct Aftermath {
  uint64_t operations = 0;
  int lost = 0;  // writers that miss an acknowledged transaction
};

// Runs a store until the power is cut at an operation, then checks what remains.
Aftermath RunUntilCut(uint64_t cut_at, unsigned keep, uint64_t seed, bool synchronous_full) {
  constexpr int kRounds = 12;
  const ScratchDirectory directory;
  Aftermath aftermath;
  Numbers acknowledged = {};
  Numbers attempted = {};
  std::string uuid;
  SqliteFileOptions options{.path = directory.File("store.db"),
                            .vfs = CrashVfs::kName,
                            .synchronous_full = synchronous_full,
                            .checkpoint_pages = 25};
  {
    CrashVfs vfs(cut_at, keep, seed);
    {
      auto store = store::OpenSqliteStore(options);
      if (store.ok()) {
        uuid = (*store)->uuid();
        std::vector<std::thread> writers;
        writers.reserve(kWriters);
        for (int writer = 0; writer < kWriters; ++writer) {
          writers.emplace_back([&, writer] {
            const auto w = static_cast<size_t>(writer);
            for (int n = 1; n <= kRounds; ++n) {
              attempted[w] = n;
              if (!WriteOne(**store, writer, n)) return;
              acknowledged[w] = n;
            }
          });
        }
        for (std::thread& writer : writers) writer.join();
        vfs.Cut();
      }
    }
    aftermath.operations = vfs.operations();
    vfs.Cut();
  }
  options.vfs.clear();
  auto store = store::OpenSqliteStore(options);
  EXPECT_TRUE(store.ok()) << store.status().text();
  if (!store.ok()) return aftermath;
  const Numbers found = NumbersIn(**store);
  for (size_t writer = 0; writer < kWriters; ++writer) {
    if (found[writer] < acknowledged[writer]) ++aftermath.lost;
    EXPECT_LE(found[writer], attempted[writer]);
  }
  if (!uuid.empty() && synchronous_full) {
    EXPECT_EQ((*store)->uuid(), uuid);
  }
  CheckHistory(**store);
  return aftermath;
}

TEST(Durability, PowerCut_NothingAcknowledgedIsLost) {
  const int cuts = Times("ROCEGW_STORE_CUTS", 200);
  Random random(TestSeed(12));
  const uint64_t operations = RunUntilCut(0, 0, 1, true).operations;
  ASSERT_GT(operations, 100u);
  for (int cut = 0; cut < cuts; ++cut) {
    // Cuts are spread evenly over all operations from the file's creation on. Of unsynced writes
    // none, some or all survive.
    const uint64_t at = 1 +
                        (static_cast<uint64_t>(cut) * operations) / static_cast<uint64_t>(cuts) +
                        random.Below(1 + operations / static_cast<uint64_t>(cuts));
    const unsigned keep = std::array<unsigned, 4>{0, 50, 90, 100}[random.Below(4)];
    const Aftermath aftermath = RunUntilCut(at, keep, random.Bits(), true);
    ASSERT_EQ(aftermath.lost, 0) << "cut at operation " << at << ", keeping " << keep << " %";
    ASSERT_FALSE(::testing::Test::HasFailure()) << "cut at operation " << at;
  }
}

TEST(Durability, PowerCut_WithoutFullSynchronisation_LosesAndIsFoundOut) {
  Random random(TestSeed(13));
  const uint64_t operations = RunUntilCut(0, 0, 1, false).operations;
  int lost = 0;
  for (int cut = 0; cut < 20; ++cut) {
    lost +=
        RunUntilCut(operations / 2 + random.Below(operations / 2), 0, random.Bits(), false).lost;
  }
  EXPECT_GT(lost, 0) << "a test that cannot see a missing sync proves nothing";
}

// ---- Disks that refuse

TEST(Durability, DiskFull_IsSaidAndPassesWithTheCause) {
  const ScratchDirectory directory;
  SqliteFileOptions options{.path = directory.File("store.db"), .vfs = CrashVfs::kName};
  {
    CrashVfs vfs(0, 0, 1);
    {
      auto store = store::OpenSqliteStore(options);
      ASSERT_TRUE(store.ok()) << store.status().text();
      ASSERT_TRUE(WriteOne(**store, 0, 1));
      vfs.SetFull(true);
      const auto refused = (*store)->Txn({{}, {Operation::Put("more", "x")}, {}});
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.status().error(), store::kFull) << refused.status().text();
      EXPECT_EQ(NumbersIn(**store)[0], 1);
      vfs.SetFull(false);
      ASSERT_TRUE(WriteOne(**store, 0, 2));
      EXPECT_FALSE((*store)->Get("more")->has_value());
      vfs.Cut();
    }
  }
  options.vfs.clear();
  auto store = store::OpenSqliteStore(options);
  ASSERT_TRUE(store.ok()) << store.status().text();
  EXPECT_EQ(NumbersIn(**store)[0], 2);
  EXPECT_FALSE((*store)->Get("more")->has_value());
}

TEST(Durability, SyncFailed_OutcomeIsUnknownAndNothingIsWrittenUntilItIsOpenedAnew) {
  const ScratchDirectory directory;
  SqliteFileOptions options{.path = directory.File("store.db"), .vfs = CrashVfs::kName};
  CrashVfs vfs(0, 0, 1);
  {
    auto store = store::OpenSqliteStore(options);
    ASSERT_TRUE(store.ok()) << store.status().text();
    ASSERT_TRUE(WriteOne(**store, 0, 1));
    vfs.FailNextSync();
    const auto unknown = (*store)->Txn({{}, {Operation::Put("a", "x")}, {}});
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.status().error(), store::kOutcomeUnknown) << unknown.status().text();
    const auto refused = (*store)->Txn({{}, {Operation::Put("b", "x")}, {}});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().error(), EIO);
    EXPECT_EQ(NumbersIn(**store)[0], 1) << "reading goes on";
  }
  auto store = store::OpenSqliteStore(options);
  ASSERT_TRUE(store.ok()) << store.status().text();
  EXPECT_EQ(NumbersIn(**store)[0], 1);
  EXPECT_FALSE((*store)->Get("b")->has_value());
  EXPECT_TRUE(WriteOne(**store, 0, 2));
}

}  // namespace
}  // namespace rocegw::testing
