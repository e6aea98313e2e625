// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/copy_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "gateway/base/unique_fd.h"

namespace rocegw::far {
namespace {

// The first page of the file says what it is; the space begins behind it.
constexpr uint64_t kHeaderBytes = CopyFile::kPageBytes;
constexpr char kMagic[] = "rocegw disk copy 1\n";

struct Header {
  char magic[sizeof kMagic];
  uint64_t bytes;
  uint64_t temporary;  // 1: of no use to a later session
};

Status Failed(const std::string& what) { return {errno, what + ": " + std::strerror(errno)}; }

class DiskFile final : public CopyFile {
 public:
  DiskFile(UniqueFd fd, uint64_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  ssize_t Read(uint8_t* buffer, uint64_t length, uint64_t offset) override {
    return pread(fd_.get(), buffer, length, InFile(offset));
  }
  ssize_t Write(const uint8_t* data, uint64_t length, uint64_t offset) override {
    return pwrite(fd_.get(), data, length, InFile(offset));
  }
  int Punch(uint64_t offset, uint64_t length) override {
    return fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, InFile(offset),
                     static_cast<off_t>(length));
  }
  int Sync() override { return fdatasync(fd_.get()); }
  int FindData(const Found& found) override {
    const off_t end = InFile(bytes_);
    for (off_t at = InFile(0); at < end;) {
      const off_t data = lseek(fd_.get(), at, SEEK_DATA);
      if (data < 0) return errno == ENXIO ? 0 : -1;
      const off_t hole = lseek(fd_.get(), data, SEEK_HOLE);
      if (hole < 0) return -1;
      if (data >= end) return 0;
      at = std::min(hole, end);
      found(static_cast<uint64_t>(data) - kHeaderBytes, static_cast<uint64_t>(at) - kHeaderBytes);
    }
    return 0;
  }

 private:
  static off_t InFile(uint64_t offset) { return static_cast<off_t>(offset + kHeaderBytes); }

  const UniqueFd fd_;
  const uint64_t bytes_;
};

// Pages of the copy would take the memory that the program wants to save; not every file system
// does without them.
UniqueFd OpenWithoutCache(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  UniqueFd fd(open(path.c_str(), kFlags | O_DIRECT, 0600));
  if (!fd.valid() && errno == EINVAL) fd = UniqueFd(open(path.c_str(), kFlags, 0600));
  return fd;
}

// Pages of the space are nobody else's: refuses a file that somebody else has made or has a name
// for, and takes the permissions of others away.
Status MakePrivate(const std::string& path, int fd, const struct stat& state) {
  if (state.st_uid != geteuid()) return {EPERM, path + ": belongs to another user"};
  if (state.st_nlink != 1) return {EPERM, path + ": has further names (hard links)"};
  return fchmod(fd, 0600) == 0 ? OkStatus() : Failed(path);
}

// Whether a file without a header holds nothing: its creation was interrupted. `page` is what it
// begins with.
bool IsEmpty(int fd, const uint8_t* page, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (page[at] != 0) return false;
  }
  return lseek(fd, static_cast<off_t>(kHeaderBytes), SEEK_DATA) < 0 && errno == ENXIO;
}

Status SyncDirectory(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string name = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd directory(open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || fsync(directory.get()) != 0) return Failed(name);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<CopyFile>> OpenCopyFile(const std::string& path, uint64_t bytes,
                                                 CopyUse use) {
  const bool keep = use == CopyUse::kContinue;
  UniqueFd fd = OpenWithoutCache(path);
  if (!fd.valid()) return Failed(path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Status{EBUSY, path + ": another session uses this disk copy"};
    return Failed(path);
  }
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return Failed(path);
  if (S_ISREG(state.st_mode)) {
    if (Status status = MakePrivate(path, fd.get(), state); !status.ok()) return status;
  }
  alignas(CopyFile::kPageBytes) std::array<uint8_t, kHeaderBytes> page{};
  Header header{};
  bool is_copy = false;
  if (S_ISREG(state.st_mode) && state.st_size > 0) {
    const ssize_t got = pread(fd.get(), page.data(), page.size(), 0);
    if (got < 0) return Failed(path);
    std::memcpy(&header, page.data(), sizeof header);
    is_copy = got == static_cast<ssize_t>(page.size()) &&
              std::memcmp(header.magic, kMagic, sizeof kMagic) == 0;
  }
  if (!S_ISREG(state.st_mode) ||
      (state.st_size > 0 && !is_copy && !IsEmpty(fd.get(), page.data(), page.size()))) {
    return Status{EEXIST, path + ": is not a disk copy; name a file that does not exist"};
  }
  if (is_copy && use == CopyUse::kTemporary && header.temporary == 0) {
    return Status{EEXIST, path + ": is a copy that is to be kept; remove it or name another file"};
  }
  if (is_copy && keep && header.temporary != 0) {
    return Status{EINVAL, path + ": is what a mount or swap has left; it cannot be continued"};
  }
  if (is_copy && keep) {
    if (header.bytes != bytes) {
      return Status{EINVAL, path + ": is the copy of a space of " + std::to_string(header.bytes) +
                                " bytes, not " + std::to_string(bytes)};
    }
    if (state.st_size != static_cast<off_t>(kHeaderBytes + bytes)) {
      return Status{EINVAL, path + ": the copy was cut off"};
    }
    return std::unique_ptr<CopyFile>(std::make_unique<DiskFile>(std::move(fd), bytes));
  }
  // The header comes last: a file without it is no copy, whatever ended this.
  page.fill(0);
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.bytes = bytes;
  header.temporary = use == CopyUse::kTemporary ? 1 : 0;
  std::memcpy(page.data(), &header, sizeof header);
  if (ftruncate(fd.get(), 0) != 0 ||
      ftruncate(fd.get(), static_cast<off_t>(kHeaderBytes + bytes)) != 0 ||
      pwrite(fd.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()) ||
      fsync(fd.get()) != 0) {
    return Failed(path);
  }
  if (Status status = SyncDirectory(path); !status.ok()) return status;
  return std::unique_ptr<CopyFile>(std::make_unique<DiskFile>(std::move(fd), bytes));
}

}  // namespace rocegw::far
