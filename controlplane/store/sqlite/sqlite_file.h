// SPDX-License-Identifier: Apache-2.0
// File of an SQLite store: created, or recognised as a complete store, and locked by one process.
// Runs before the store has threads.
//
// Tables: `meta` (name, value): uuid, compacted, swept. `changes`: one row per key that a
// transaction changed; its primary key is (revision, number within the transaction), packed into
// one integer. A key's current value is in its row with the highest primary key.
#pragma once

#include <memory>
#include <string>

#include "controlplane/store/sqlite/sqlite_database.h"
#include "controlplane/store/transaction.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::store {

struct SqliteFileOptions {
  std::string path;
  std::string vfs;  // name of SQLite's VFS; empty: the default
  // False loses acknowledged transactions in a power failure; for the test that shows this.
  bool synchronous_full = true;
  // Pages of log after which the writer copies it into the file. A few MiB: rare, and fast enough.
  int checkpoint_pages = 2000;
};

struct SqliteFile {
  UniqueFd lock;  // lock on PATH.lock while the store exists
  std::unique_ptr<SqliteDatabase> database;
  std::string uuid;
  Revision revision = 0;   // newest revision
  Revision compacted = 0;  // oldest readable revision
  Revision swept = 0;      // up to it, superfluous rows were removed
};

// kInUse: another process has it; kDamaged: the file is not a complete store.
StatusOr<SqliteFile> OpenSqliteFile(const SqliteFileOptions& options);

// Opens another connection, which only reads.
StatusOr<std::unique_ptr<SqliteDatabase>> OpenSqliteReader(const SqliteFileOptions& options);

}  // namespace rocegw::store
