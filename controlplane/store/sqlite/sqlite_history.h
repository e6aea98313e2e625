// SPDX-License-Identifier: Apache-2.0
// Queries of the store on its tables, on one connection: statements and the meaning of their rows.
// Used by one thread at a time. A method that writes runs inside the caller's transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/store/sqlite/sqlite_database.h"
#include "controlplane/store/transaction.h"

namespace rocegw::store {

class SqliteHistory {
 public:
  explicit SqliteHistory(SqliteDatabase& database) : database_(database) {}

  // Returns the key's current entry, as this connection sees it.
  StatusOr<std::optional<Entry>> Find(const std::string& key);
  // Returns the key's entry at a readable revision.
  StatusOr<std::optional<Entry>> FindAt(const std::string& key, Revision revision);
  // Returns the range at a readable revision.
  StatusOr<RangeResult> Read(const RangeRequest& request, Revision revision);
  // Returns whole transactions from `from` to `to`: at least one if there is any, until `rows` are
  // exceeded.
  StatusOr<std::vector<Changes>> ReadChanges(Revision from, Revision to, size_t rows);

  Status Append(Revision revision, int64_t sub, const Change& change);
  StatusOr<std::vector<std::string>> KeysOfLeases();
  StatusOr<std::vector<std::string>> KeysOfLease(LeaseId lease);

  Status MarkCompacted(Revision revision);
  // Removes a bounded number of rows that changes after `swept` made superfluous at revision
  // `compacted`. Returns up to where.
  StatusOr<Revision> Sweep(Revision swept, Revision compacted);

 private:
  StatusOr<std::optional<Entry>> FindBelow(const std::string& key, int64_t end);
  StatusOr<std::vector<std::string>> Keys(SqliteStatement& statement);

  SqliteDatabase& database_;
  SqliteStatement find_{database_,
                        "SELECT id, create_revision, deleted, lease, value FROM changes "
                        "WHERE key = ?1 AND id < ?2 ORDER BY id DESC LIMIT 1"};
  // The inner query walks the index and finds the current row of each key, without sorting.
  SqliteStatement read_bounded_{database_,
                                "SELECT c.key, c.value, c.create_revision, c.id, c.lease FROM "
                                "(SELECT max(id) AS id FROM changes INDEXED BY changes_by_key "
                                " WHERE key >= ?1 AND key < ?2 AND id < ?3 GROUP BY key) AS newest "
                                "CROSS JOIN changes AS c ON c.id = newest.id WHERE c.deleted = 0"};
  SqliteStatement read_open_{database_,
                             "SELECT c.key, c.value, c.create_revision, c.id, c.lease FROM "
                             "(SELECT max(id) AS id FROM changes INDEXED BY changes_by_key "
                             " WHERE key >= ?1 AND id < ?2 GROUP BY key) AS newest "
                             "CROSS JOIN changes AS c ON c.id = newest.id WHERE c.deleted = 0"};
  SqliteStatement changes_{database_,
                           "SELECT id, key, create_revision, deleted, lease, value FROM changes "
                           "WHERE id >= ?1 AND id < ?2 ORDER BY id"};
  SqliteStatement append_{database_, "INSERT INTO changes VALUES (?1, ?2, ?3, ?4, ?5, ?6)"};
  SqliteStatement leased_{database_, "SELECT DISTINCT key FROM changes WHERE lease <> 0"};
  SqliteStatement of_lease_{database_,
                            "SELECT DISTINCT key FROM changes WHERE lease = ?1 AND lease <> 0"};
  SqliteStatement mark_{database_, "UPDATE meta SET value = ?1 WHERE name = 'compacted'"};
  SqliteStatement piece_{database_,
                         "SELECT id FROM changes WHERE id >= ?1 AND id < ?2 "
                         "ORDER BY id LIMIT 1 OFFSET ?3"};
  SqliteStatement sweep_old_{
      database_,
      "DELETE FROM changes WHERE id IN (SELECT o.id FROM changes AS n "
      "CROSS JOIN changes AS o INDEXED BY changes_by_key ON o.key = n.key AND o.id < n.id "
      "WHERE n.id >= ?1 AND n.id < ?2)"};
  SqliteStatement sweep_deletions_{
      database_, "DELETE FROM changes WHERE id >= ?1 AND id < ?2 AND deleted <> 0"};
  SqliteStatement swept_{database_, "UPDATE meta SET value = ?1 WHERE name = 'swept'"};
};

}  // namespace rocegw::store
