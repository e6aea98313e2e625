// SPDX-License-Identifier: Apache-2.0
// The file of an SQLite store: made, or recognised as ours and whole, and held by one process. Runs
// before the store has threads.
//
// Tables: `meta` (name, value): uuid, compacted, swept. `changes`: one row per key that a
// transaction changed; its primary key is (revision, number within the transaction), packed into
// one integer. A key holds what its row with the highest one says.
#pragma once

#include <memory>
#include <string>

#include "controlplane/store/sqlite/sqlite_database.h"
#include "controlplane/store/transaction.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::store {

struct SqliteFileOptions {
  std::string path;
  std::string vfs;  // of SQLite; empty: the usual one
  // False loses acknowledged transactions in a power cut: for the test that shows it.
  bool synchronous_full = true;
  // Of the log, after which the writer copies it into the file. A few MiB: rare, and quick enough.
  int checkpoint_pages = 2000;
};

struct SqliteFile {
  UniqueFd lock;  // of PATH.lock, for as long as the store lives
  std::unique_ptr<SqliteDatabase> database;
  std::string uuid;
  Revision revision = 0;   // the newest
  Revision compacted = 0;  // below it nothing can be read
  Revision swept = 0;      // up to it, what compaction made superfluous is gone
};

// kInUse when another process has it; kDamaged when there is a file that is not a whole store.
StatusOr<SqliteFile> OpenSqliteFile(const SqliteFileOptions& options);

// One more connection, which only reads.
StatusOr<std::unique_ptr<SqliteDatabase>> OpenSqliteReader(const SqliteFileOptions& options);

}  // namespace rocegw::store
