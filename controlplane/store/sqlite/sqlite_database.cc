// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/sqlite/sqlite_database.h"

#include <utility>

#include "controlplane/store/store.h"

namespace rocegw::store {
namespace {

int ErrorOf(int result) {
  switch (result & 0xff) {
    case SQLITE_FULL:
      return kFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return kDamaged;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return kInUse;
    case SQLITE_NOMEM:
      return ENOMEM;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return EACCES;
    default:
      return EIO;
  }
}

}  // namespace

StatusOr<std::unique_ptr<SqliteDatabase>> SqliteDatabase::Open(const std::string& path, int flags,
                                                               const std::string& vfs) {
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(path));
  const int result = sqlite3_open_v2(path.c_str(), &database->handle_, flags | SQLITE_OPEN_NOMUTEX,
                                     vfs.empty() ? nullptr : vfs.c_str());
  if (result != SQLITE_OK) return database->StatusOf(result);
  sqlite3_extended_result_codes(database->handle_, 1);
  // Another connection of this process may be recovering or checkpointing.
  sqlite3_busy_timeout(database->handle_, 5000);
  return database;
}

SqliteDatabase::~SqliteDatabase() { sqlite3_close_v2(handle_); }

Status SqliteDatabase::StatusOf(int result) const {
  if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return OkStatus();
  std::string text = path_ + ": " + sqlite3_errstr(result);
  if (handle_ != nullptr) {
    text += ": ";
    text += sqlite3_errmsg(handle_);
  }
  return {ErrorOf(result), std::move(text)};
}

Status SqliteDatabase::Execute(const char* sql) {
  return StatusOf(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr));
}

StatusOr<int64_t> SqliteDatabase::Number(const char* sql) {
  SqliteStatement statement(*this, sql);
  if (Status status = statement.Start(); !status.ok()) return status;
  const auto row = statement.Step();
  if (!row.ok()) return row.status();
  return row.value() ? statement.Number(0) : 0;
}

StatusOr<std::string> SqliteDatabase::Text(const char* sql) {
  SqliteStatement statement(*this, sql);
  if (Status status = statement.Start(); !status.ok()) return status;
  const auto row = statement.Step();
  if (!row.ok()) return row.status();
  return row.value() ? std::string(statement.Blob(0)) : std::string();
}

Status SqliteStatement::Prepare() {
  if (statement_ != nullptr) return OkStatus();
  return database_.StatusOf(sqlite3_prepare_v3(database_.handle(), sql_, -1,
                                               SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
}

StatusOr<bool> SqliteStatement::Step() {
  const int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return database_.StatusOf(result);
}

}  // namespace rocegw::store
