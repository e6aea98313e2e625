// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/kept/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "gateway/base/errno_status.h"
#include "gateway/base/mix.h"
#include "gateway/far/disk/sync_directory.h"

namespace rocegw::far {
namespace {

struct Header {
  char magic[24];
  uint64_t bytes;  // size of the space
};

Header HeaderOf(const char* magic, uint64_t bytes) {
  Header header{};
  std::strncpy(header.magic, magic, sizeof header.magic - 1);
  header.bytes = bytes;
  return header;
}

// Stands before the records of a commit.
struct CommitHeader {
  uint64_t length;
  uint64_t checksum;
};

// Detects commits that were cut off. It does not detect those that another writer of the file made.
uint64_t Checksum(std::string_view text, uint64_t offset) {
  uint64_t sum = Mix(offset + text.size());
  for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
    sum = Mix(sum ^ word) + at;
  }
  return sum;
}

std::string CommitOf(std::string_view records, uint64_t offset) {
  const CommitHeader header{records.size(), Checksum(records, offset)};
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  return text.append(records);
}

StatusOr<std::string> ReadAll(int fd, const std::string& path) {
  std::string text;
  std::array<char, 1 << 16> part;
  for (;;) {
    const ssize_t got = pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()));
    if (got < 0) return ErrnoStatus(path);
    if (got == 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

}  // namespace

StatusOr<std::unique_ptr<Journal>> Journal::Open(const std::string& path, uint64_t bytes,
                                                 std::string* records, bool* exists,
                                                 const Kind& kind) {
  const std::string lock_path = path + ".lock";
  UniqueFd lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return ErrnoStatus(lock_path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Status{EBUSY, path + ": another process uses it"};
    return ErrnoStatus(lock_path);
  }
  std::unique_ptr<Journal> journal(new Journal(path, bytes, kind, std::move(lock)));
  records->clear();
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  *exists = fd.valid();
  if (!fd.valid() && errno != ENOENT) return ErrnoStatus(path);
  if (!fd.valid()) return journal;
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return ErrnoStatus(path);
  if (!S_ISREG(state.st_mode)) return Status{EINVAL, path + ": is no regular file"};
  if (state.st_uid != geteuid()) return Status{EPERM, path + ": belongs to another user"};
  if (kind.secret && (state.st_mode & 077) != 0) {
    return Status{EPERM, path + ": other users can read its secrets, or write to it (mode 0600)"};
  }
  const auto text = ReadAll(fd.get(), path);
  if (!text.ok()) return text.status();
  const std::string_view all = text.value();
  Header header{};
  if (all.size() >= sizeof header) std::memcpy(&header, all.data(), sizeof header);
  const Header wanted = HeaderOf(kind.magic, bytes);
  if (std::memcmp(header.magic, wanted.magic, sizeof header.magic) != 0) {
    return Status{EINVAL, path + ": holds no " + kind.what + "; remove it or name another file"};
  }
  if (header.bytes != bytes) {
    return Status{EINVAL, path + ": has the " + kind.what + " of a space of " +
                              std::to_string(header.bytes) + " bytes, not " +
                              std::to_string(bytes)};
  }
  uint64_t at = sizeof header;
  for (;;) {
    CommitHeader commit{};
    if (all.size() - at < sizeof commit) break;
    std::memcpy(&commit, all.data() + at, sizeof commit);
    if (commit.length > all.size() - at - sizeof commit) break;
    const std::string_view body = all.substr(at + sizeof commit, commit.length);
    if (Checksum(body, at) != commit.checksum) break;
    records->append(body);
    at += sizeof commit + commit.length;
  }
  journal->fd_ = std::move(fd);
  journal->size_ = at;
  return journal;
}

Status Journal::Write(int fd, std::string_view text, uint64_t offset) const {
  while (!text.empty()) {
    const ssize_t got = pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (got < 0) return ErrnoStatus(path_);
    text.remove_prefix(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return fdatasync(fd) == 0 ? OkStatus() : ErrnoStatus(path_);
}

Status Journal::Append(std::string_view records) {
  const std::string commit = CommitOf(records, size_);
  // Removes the rest of a commit that failed: it could be read after a shorter one.
  Status status =
      ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0 ? OkStatus() : ErrnoStatus(path_);
  if (status.ok()) status = Write(fd_.get(), commit, size_);
  if (status.ok()) {
    size_ += commit.size();
  } else {
    [[maybe_unused]] const int cut = ftruncate(fd_.get(), static_cast<off_t>(size_));
  }
  return status;
}

Status Journal::Replace(std::string_view records) {
  const Header header = HeaderOf(kind_.magic, bytes_);
  std::string text(reinterpret_cast<const char*>(&header), sizeof header);
  text += CommitOf(records, sizeof header);
  const std::string next = path_ + ".new";
  UniqueFd fd(open(next.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return ErrnoStatus(next);
  Status status = Write(fd.get(), text, 0);
  if (status.ok() && rename(next.c_str(), path_.c_str()) != 0) status = ErrnoStatus(path_);
  if (!status.ok()) {
    unlink(next.c_str());
    return status;
  }
  fd_ = std::move(fd);
  size_ = text.size();
  return SyncDirectoryOf(path_);
}

}  // namespace rocegw::far
