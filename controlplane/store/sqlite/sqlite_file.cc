// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/sqlite/sqlite_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "controlplane/store/random_uuid.h"
#include "controlplane/store/store.h"

namespace rocegw::store {
namespace {

// Application id in the file's header, and the version of its tables.
constexpr int64_t kApplicationId = 0x726f6365;
constexpr int64_t kFormat = 1;

// Appending to a table with an integer key touches the fewest pages. The index contains everything
// that a lookup by key needs, so it alone finds the row of a key. The view is for people.
constexpr char kSchema[] = R"(
  CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
  CREATE TABLE changes (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL, create_revision INTEGER NOT NULL,
    deleted INTEGER NOT NULL, lease INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE INDEX changes_by_key ON changes (key, id);
  CREATE INDEX changes_by_lease ON changes (lease) WHERE lease <> 0;
  CREATE VIEW history AS SELECT id >> 20 AS revision, id & 1048575 AS sub, CAST(key AS TEXT) AS key,
    create_revision, deleted, lease, length(value) AS bytes FROM changes;
)";

// 32 MiB of pages instead of 2: each write looks up keys throughout the index, and missing pages
// are copied from the file or the log each time.
constexpr char kWriterCache[] = "PRAGMA cache_size = -32768";

Status Environment(const std::string& what, const std::string& path) {
  const int error = errno;
  return {error, what + " " + path + ": " + std::strerror(error)};
}

StatusOr<UniqueFd> Lock(const std::string& path) {
  const std::string name = path + ".lock";
  UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return Environment("cannot open", name);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Environment("cannot lock", name);
    char owner[32] = "";
    if (::pread(fd.get(), owner, sizeof(owner) - 1, 0) < 0) owner[0] = '\0';
    return Status(kInUse, path + " is in use by process " + owner + "; only one may have it");
  }
  const std::string self = std::to_string(::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), self.data(), self.size(), 0) != static_cast<ssize_t>(self.size())) {
    return Environment("cannot write", name);
  }
  return fd;
}

// The file's directory entry must be durable, too. SQLite does this for its log.
Status SyncFolder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return Environment("cannot sync", folder);
  return OkStatus();
}

// Creates the file with its final mode, which its log inherits. Returns true if the file is empty.
StatusOr<bool> MakeIfAbsent(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return Environment("cannot open", path);
  struct stat about = {};
  if (::fstat(fd.get(), &about) != 0) return Environment("cannot stat", path);
  if (!S_ISREG(about.st_mode)) return Status(kDamaged, path + " is not a file");
  return about.st_size == 0;
}

Status Damaged(const std::string& path, const std::string& what) {
  return {kDamaged,
          path + " " + what + "; restore it from a backup, or move it away to begin anew"};
}

Status MakeTables(SqliteDatabase& database) {
  const std::string sql =
      "BEGIN IMMEDIATE; PRAGMA application_id = " + std::to_string(kApplicationId) +
      "; PRAGMA user_version = " + std::to_string(kFormat) + ";" + kSchema +
      "INSERT INTO meta VALUES ('uuid', CAST('" + RandomUuid() +
      "' AS BLOB)), ('compacted', 0), ('swept', 0); COMMIT;";
  return database.Execute(sql.c_str());
}

// Returns true if the file is empty, because its creator died.
StatusOr<bool> Recognise(SqliteDatabase& database, const std::string& path) {
  const auto id = database.Number("PRAGMA application_id");
  const auto objects = database.Number("SELECT count(*) FROM sqlite_master");
  for (const Status& status : {id.status(), objects.status()}) {
    if (status.error() == kDamaged) return Damaged(path, "is no SQLite file, or a damaged one");
    if (!status.ok()) return status;
  }
  if (id.value() == 0 && objects.value() == 0) return true;
  if (id.value() != kApplicationId) return Damaged(path, "belongs to another program");
  const auto format = database.Number("PRAGMA user_version");
  if (!format.ok()) return format.status();
  if (format.value() != kFormat) {
    return Damaged(path, "has format " + std::to_string(format.value()) + ", this program knows " +
                             std::to_string(kFormat));
  }
  const auto check = database.Text("PRAGMA quick_check(1)");
  if (!check.ok()) {
    return check.status().error() == kDamaged ? Damaged(path, "is damaged") : check.status();
  }
  if (check.value() != "ok") return Damaged(path, "is damaged (" + check.value() + ")");
  return false;
}

Status ReadMeta(SqliteFile& file, const std::string& path) {
  auto uuid = file.database->Text("SELECT value FROM meta WHERE name = 'uuid'");
  if (!uuid.ok()) return uuid.status();
  if (uuid->size() != 36) return Damaged(path, "has no identity");
  file.uuid = std::move(*uuid);
  const auto compacted = file.database->Number("SELECT value FROM meta WHERE name = 'compacted'");
  if (!compacted.ok()) return compacted.status();
  const auto swept = file.database->Number("SELECT value FROM meta WHERE name = 'swept'");
  if (!swept.ok()) return swept.status();
  const auto newest = file.database->Number("SELECT max(id) >> 20 FROM changes");
  if (!newest.ok()) return newest.status();
  file.compacted = compacted.value();
  file.swept = swept.value();
  // The newest row may have been a deletion that was compacted away.
  file.revision = std::max(newest.value(), file.compacted);
  return OkStatus();
}

}  // namespace

StatusOr<SqliteFile> OpenSqliteFile(const SqliteFileOptions& options) {
  SqliteFile file;
  auto lock = Lock(options.path);
  if (!lock.ok()) return lock.status();
  file.lock = std::move(*lock);
  auto empty = MakeIfAbsent(options.path);
  if (!empty.ok()) return empty.status();
  auto database = SqliteDatabase::Open(options.path, SQLITE_OPEN_READWRITE, options.vfs);
  if (!database.ok()) return database.status();
  file.database = std::move(*database);

  if (!empty.value()) {
    // Checked before anything is changed: the file may be foreign.
    empty = Recognise(*file.database, options.path);
    if (!empty.ok()) return empty.status();
  }
  const auto mode = file.database->Text("PRAGMA journal_mode = WAL");
  if (!mode.ok()) return mode.status();
  if (mode.value() != "wal") {
    return Status(EIO, options.path + ": SQLite cannot use a write-ahead log there (" +
                           mode.value() + "); a network file system?");
  }
  Status status = file.database->Execute(options.synchronous_full ? "PRAGMA synchronous = FULL"
                                                                  : "PRAGMA synchronous = NORMAL");
  if (status.ok()) {
    const std::string pages = std::to_string(options.checkpoint_pages);
    status = file.database->Execute(("PRAGMA wal_autocheckpoint = " + pages).c_str());
  }
  if (status.ok()) status = file.database->Execute(kWriterCache);
  if (status.ok() && empty.value()) status = MakeTables(*file.database);
  if (status.ok() && empty.value()) status = SyncFolder(options.path);
  if (status.ok()) status = ReadMeta(file, options.path);
  if (!status.ok()) return status;
  return file;
}

StatusOr<std::unique_ptr<SqliteDatabase>> OpenSqliteReader(const SqliteFileOptions& options) {
  auto database = SqliteDatabase::Open(options.path, SQLITE_OPEN_READWRITE, options.vfs);
  if (!database.ok()) return database.status();
  if (Status status = (*database)->Execute("PRAGMA query_only = ON"); !status.ok()) return status;
  return database;
}

}  // namespace rocegw::store
