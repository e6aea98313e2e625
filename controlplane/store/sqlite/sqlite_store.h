// SPDX-License-Identifier: Apache-2.0
// Store in one SQLite file: the default, for one controller. Durable by SQLite's write-ahead log
// with synchronous=FULL. One writer commits groups (group_commit.h); reads run on the caller's
// thread, on connections of their own; watches are served from memory and, for older changes, from
// the file. One process owns the file (PATH.lock). Leases end with their object or the process:
// keys that a dead one left are deleted when the file is opened.
#pragma once

#include <memory>

#include "controlplane/store/sqlite/sqlite_file.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

// Creates a missing file; its directory must exist. kInUse, kDamaged, or the system's errno with a
// text that names the file.
StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const SqliteFileOptions& options);

}  // namespace rocegw::store
