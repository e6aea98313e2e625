// SPDX-License-Identifier: Apache-2.0
#include "tests/support/store/crash_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "gateway/base/unique_fd.h"
#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

constexpr size_t kSector = 512;

// Content of a file as programs see it, and its sectors that are not on disk.
struct Shadow {
  std::string path;
  std::string content;
  std::set<size_t> dirty;  // sectors that are not on disk
  bool resized = false;

  void Load() {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char block[65536];
    ssize_t count = 0;
    while (fd.valid() && (count = ::read(fd.get(), block, sizeof(block))) > 0) {
      content.append(block, static_cast<size_t>(count));
    }
  }
  void Touch(size_t offset, size_t length) {
    for (size_t s = offset / kSector; s <= (offset + length - 1) / kSector; ++s) dirty.insert(s);
  }
  // Writes the sectors for which `chosen` returns true to the disk.
  template <typename F>
  void Flush(bool with_size, F&& chosen) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) return;
    for (const size_t sector : dirty) {
      const size_t offset = sector * kSector;
      if (offset >= content.size() || !chosen()) continue;
      const size_t length = std::min(kSector, content.size() - offset);
      if (::pwrite(fd.get(), content.data() + offset, length, static_cast<off_t>(offset)) !=
          static_cast<ssize_t>(length)) {
        std::abort();
      }
    }
    if (with_size && ::ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0) std::abort();
    dirty.clear();
    resized = false;
  }
};

struct Disk {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Shadow>> files;
  sqlite3_vfs vfs = {};
  sqlite3_vfs* real = nullptr;
  uint64_t operations = 0;
  uint64_t cut_at = 0;
  unsigned keep = 0;
  bool cut = false;
  bool full = false;
  bool fail_sync = false;
  std::unique_ptr<Random> random;

  void CutLocked() {
    if (cut) return;
    cut = true;
    for (auto& [path, shadow] : files) {
      const bool with_size = shadow->resized && random->Below(100) < keep;
      shadow->Flush(with_size, [this] { return random->Below(100) < keep; });
    }
  }
  // Counts an operation. Returns false if the power is off.
  bool Begin() {
    if (!cut && cut_at != 0 && operations + 1 == cut_at) CutLocked();
    ++operations;
    return !cut;
  }
};

Disk& TheDisk() {
  static Disk disk;
  return disk;
}

struct CrashFile {
  sqlite3_file base;
  std::shared_ptr<Shadow> shadow;

  // The file of the real file system, whose locks and shared memory are used.
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

CrashFile* Of(sqlite3_file* file) { return reinterpret_cast<CrashFile*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Of(file)->real(); }

int Close(sqlite3_file* file) {
  const int result = Real(file)->pMethods->xClose(Real(file));
  Of(file)->shadow.~shared_ptr();
  return result;
}

int Read(sqlite3_file* file, void* to, int length, sqlite3_int64 offset) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  if (disk.cut) return SQLITE_IOERR_READ;
  const std::string& content = Of(file)->shadow->content;
  const size_t from = std::min(static_cast<size_t>(offset), content.size());
  const size_t count = std::min(static_cast<size_t>(length), content.size() - from);
  std::memcpy(to, content.data() + from, count);
  if (count == static_cast<size_t>(length)) return SQLITE_OK;
  std::memset(static_cast<char*>(to) + count, 0, static_cast<size_t>(length) - count);
  return SQLITE_IOERR_SHORT_READ;
}

int Write(sqlite3_file* file, const void* from, int length, sqlite3_int64 offset) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  if (!disk.Begin()) return SQLITE_IOERR_WRITE;
  Shadow& shadow = *Of(file)->shadow;
  const auto begin = static_cast<size_t>(offset);
  const auto count = static_cast<size_t>(length);
  if (disk.full && shadow.content.size() < begin + count) return SQLITE_FULL;
  if (shadow.content.size() < begin + count) shadow.content.resize(begin + count);
  std::memcpy(shadow.content.data() + begin, from, count);
  shadow.Touch(begin, count);
  return SQLITE_OK;
}

int Truncate(sqlite3_file* file, sqlite3_int64 size) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  if (!disk.Begin()) return SQLITE_IOERR_TRUNCATE;
  Of(file)->shadow->content.resize(static_cast<size_t>(size));
  Of(file)->shadow->resized = true;
  return SQLITE_OK;
}

int Sync(sqlite3_file* file, int) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  if (!disk.Begin() || std::exchange(disk.fail_sync, false)) return SQLITE_IOERR_FSYNC;
  Of(file)->shadow->Flush(true, [] { return true; });
  return SQLITE_OK;
}

int FileSize(sqlite3_file* file, sqlite3_int64* size) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  *size = static_cast<sqlite3_int64>(Of(file)->shadow->content.size());
  return SQLITE_OK;
}

int Lock(sqlite3_file* f, int level) { return Real(f)->pMethods->xLock(Real(f), level); }
int Unlock(sqlite3_file* f, int level) { return Real(f)->pMethods->xUnlock(Real(f), level); }
int CheckReservedLock(sqlite3_file* f, int* out) {
  return Real(f)->pMethods->xCheckReservedLock(Real(f), out);
}
// Keeps hints from the real file: a size or chunk hint would change it.
int FileControl(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int SectorSize(sqlite3_file*) { return kSector; }
// Guarantees nothing: a write during power loss may damage neighbouring bytes and is not atomic.
int Characteristics(sqlite3_file*) { return 0; }
int ShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
  return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, out);
}
int ShmLock(sqlite3_file* f, int offset, int n, int flags) {
  return Real(f)->pMethods->xShmLock(Real(f), offset, n, flags);
}
void ShmBarrier(sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); }
int ShmUnmap(sqlite3_file* f, int remove) { return Real(f)->pMethods->xShmUnmap(Real(f), remove); }

const sqlite3_io_methods kMethods = {
    .iVersion = 2,
    .xClose = Close,
    .xRead = Read,
    .xWrite = Write,
    .xTruncate = Truncate,
    .xSync = Sync,
    .xFileSize = FileSize,
    .xLock = Lock,
    .xUnlock = Unlock,
    .xCheckReservedLock = CheckReservedLock,
    .xFileControl = FileControl,
    .xSectorSize = SectorSize,
    .xDeviceCharacteristics = Characteristics,
    .xShmMap = ShmMap,
    .xShmLock = ShmLock,
    .xShmBarrier = ShmBarrier,
    .xShmUnmap = ShmUnmap,
    .xFetch = nullptr,
    .xUnfetch = nullptr,
};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  Disk& disk = TheDisk();
  file->pMethods = nullptr;
  // Temporary files would not survive the cut, and the store needs none.
  if (name == nullptr) return SQLITE_CANTOPEN;
  const std::lock_guard lock(disk.mutex);
  if (disk.cut) return SQLITE_CANTOPEN;
  const int result = disk.real->xOpen(disk.real, name, Real(file), flags, out_flags);
  if (result != SQLITE_OK) return result;
  new (&Of(file)->shadow) std::shared_ptr<Shadow>();
  auto& shadow = disk.files[name];
  if (shadow == nullptr) {
    shadow = std::make_shared<Shadow>();
    shadow->path = name;
    shadow->Load();
  }
  Of(file)->shadow = shadow;
  file->pMethods = &kMethods;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs*, const char* name, int sync) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  if (!disk.Begin()) return SQLITE_IOERR_DELETE;
  disk.files.erase(name);
  return disk.real->xDelete(disk.real, name, sync);
}

int Access(sqlite3_vfs*, const char* name, int flags, int* out) {
  Disk& disk = TheDisk();
  const std::lock_guard lock(disk.mutex);
  const auto found = disk.files.find(name);
  if (flags == SQLITE_ACCESS_EXISTS && found != disk.files.end()) {
    *out = found->second->content.empty() ? 0 : 1;
    return SQLITE_OK;
  }
  return disk.real->xAccess(disk.real, name, flags, out);
}

}  // namespace

CrashVfs::CrashVfs(uint64_t cut_at, unsigned keep, uint64_t seed) {
  Disk& disk = TheDisk();
  disk.files.clear();
  disk.operations = 0;
  disk.cut_at = cut_at;
  disk.keep = keep;
  disk.cut = disk.full = disk.fail_sync = false;
  disk.random = std::make_unique<Random>(seed);
  disk.real = sqlite3_vfs_find(nullptr);
  disk.vfs = *disk.real;
  disk.vfs.zName = kName;
  disk.vfs.szOsFile = static_cast<int>(sizeof(CrashFile)) + disk.real->szOsFile;
  disk.vfs.pNext = nullptr;
  disk.vfs.xOpen = Open;
  disk.vfs.xDelete = Delete;
  disk.vfs.xAccess = Access;
  sqlite3_vfs_register(&disk.vfs, 0);
}

CrashVfs::~CrashVfs() { sqlite3_vfs_unregister(&TheDisk().vfs); }

void CrashVfs::Cut() {
  const std::lock_guard lock(TheDisk().mutex);
  TheDisk().CutLocked();
}

void CrashVfs::SetFull(bool full) {
  const std::lock_guard lock(TheDisk().mutex);
  TheDisk().full = full;
}

void CrashVfs::FailNextSync() {
  const std::lock_guard lock(TheDisk().mutex);
  TheDisk().fail_sync = true;
}

bool CrashVfs::cut() const {
  const std::lock_guard lock(TheDisk().mutex);
  return TheDisk().cut;
}

uint64_t CrashVfs::operations() const {
  const std::lock_guard lock(TheDisk().mutex);
  return TheDisk().operations;
}

}  // namespace rocegw::testing
