// SPDX-License-Identifier: Apache-2.0
// The store in one SQLite file: the default, for one controller. Durable by SQLite's write-ahead
// log with synchronous=FULL. One writer thread commits groups (group_commit.h); reads run on the
// caller's thread, on connections of their own; watches are served from memory and, further back,
// from the file. One process has the file (PATH.lock); leases end with their object or the process:
// what a dead one left is deleted when the file is opened.
#pragma once

#include <memory>

#include "controlplane/store/sqlite/sqlite_file.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

// Makes the file when there is none; its folder must be there. kInUse, kDamaged, or the
// environment's errno with a text that names the file.
StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteFileOptions& options);

}  // namespace rocegw::store
