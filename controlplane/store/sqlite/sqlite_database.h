// SPDX-License-Identifier: Apache-2.0
// Connection to an SQLite file with its prepared statements. Used by one thread at a time. SQLite's
// result codes become the errors of store.h; the text names the file.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "gateway/base/status.h"

namespace rocegw::store {

class SqliteDatabase {
 public:
  // `flags` and `vfs`: see sqlite3_open_v2.
  static StatusOr<std::unique_ptr<SqliteDatabase>> Open(const std::string& path, int flags,
                                                        const std::string& vfs);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // Executes statements without parameters and rows, separated by semicolons.
  Status Execute(const char* sql);
  // Returns the first column of the first row.
  StatusOr<int64_t> Number(const char* sql);
  StatusOr<std::string> Text(const char* sql);

  Status StatusOf(int result) const;
  sqlite3* handle() const { return handle_; }

 private:
  explicit SqliteDatabase(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  sqlite3* handle_ = nullptr;
};

// Statement that is prepared at its first use. Start, Step until there is no row, Reset.
class SqliteStatement {
 public:
  SqliteStatement(SqliteDatabase& database, const char* sql) : database_(database), sql_(sql) {}
  ~SqliteStatement() { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  // Binds parameters in order. Texts are bound as blobs, so that they compare as bytes, and must
  // live until Reset.
  template <typename... Values>
  Status Start(const Values&... values) {
    Status status = Prepare();
    int index = 0;
    if (status.ok()) (Bind(++index, values), ...);
    return status;
  }
  // Returns true if there is a row.
  StatusOr<bool> Step();
  void Reset() { sqlite3_reset(statement_); }
  // Runs a statement without rows, from Start to Reset.
  template <typename... Values>
  Status Run(const Values&... values) {
    Status status = Start(values...);
    if (!status.ok()) return status;
    const auto row = Step();
    Reset();
    return row.status();
  }

  int64_t Number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string_view Blob(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    return {bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  Status Prepare();
  void Bind(int index, int64_t value) { sqlite3_bind_int64(statement_, index, value); }
  void Bind(int index, std::string_view value) {
    // An empty value may have no address, which would mean NULL.
    sqlite3_bind_blob64(statement_, index, value.empty() ? "" : value.data(), value.size(),
                        SQLITE_STATIC);
  }

  SqliteDatabase& database_;
  const char* const sql_;
  sqlite3_stmt* statement_ = nullptr;
};

// Scope that resets a statement at its end.
class SqliteReset {
 public:
  explicit SqliteReset(SqliteStatement& statement) : statement_(statement) {}
  ~SqliteReset() { statement_.Reset(); }
  SqliteReset(const SqliteReset&) = delete;
  SqliteReset& operator=(const SqliteReset&) = delete;

 private:
  SqliteStatement& statement_;
};

}  // namespace rocegw::store
