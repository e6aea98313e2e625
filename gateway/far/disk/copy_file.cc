// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/copy_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/base/errno_status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/disk/sync_directory.h"

namespace rocegw::far {
namespace {

// The first page of the file says what it is; the space begins behind it.
constexpr uint64_t kHeaderBytes = CopyFile::kPageBytes;
constexpr char kMagic[] = "rocegw disk copy 1\n";

struct Header {
  char magic[sizeof kMagic];
  uint64_t bytes;
  uint64_t temporary;  // 1: of no use to a later session
  uint64_t lost;       // ranges in the list of lost pages
  // 0, 1: the list is in that area behind the space, and the next one is written to the other area.
  // kInHeader: it is in the header's page, which needs no room on a disk that is full.
  uint64_t lost_area;
};

constexpr uint64_t kInHeader = 2;
constexpr uint64_t kListOffset = 128;  // in the header's page
constexpr uint64_t kMostInHeader = (kHeaderBytes - kListOffset) / sizeof(CopyFile::Range);
static_assert(sizeof(Header) <= kListOffset);

// Memory for one transfer that bypasses the page cache, zeroed.
struct FreeMemory {
  void operator()(uint8_t* memory) const { std::free(memory); }
};
using Aligned = std::unique_ptr<uint8_t, FreeMemory>;

Aligned Allocate(uint64_t bytes) {
  void* memory = std::aligned_alloc(CopyFile::kPageBytes, bytes);
  if (memory != nullptr) std::memset(memory, 0, bytes);
  return Aligned(static_cast<uint8_t*>(memory));
}

uint64_t WholePages(uint64_t bytes) {
  return (bytes + CopyFile::kPageBytes - 1) / CopyFile::kPageBytes * CopyFile::kPageBytes;
}

class DiskFile final : public CopyFile {
 public:
  DiskFile(UniqueFd fd, const Header& header)
      : fd_(std::move(fd)), bytes_(header.bytes), header_(header) {}

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
  int SetLost(const std::vector<Range>& lost) override {
    Header header = header_;
    header.lost = lost.size();
    header.lost_area = header_.lost_area == 0 ? 1 : 0;
    if (lost.size() <= kMostInHeader) header.lost_area = kInHeader;
    const Aligned page = Allocate(kHeaderBytes);
    const Aligned list = Allocate(ListBytes(lost.size()));
    if (page == nullptr || list == nullptr) return -1;
    // The header names the list only when the list is on the disk.
    if (!lost.empty() && header.lost_area == kInHeader) {
      std::memcpy(page.get() + kListOffset, lost.data(), lost.size() * sizeof(Range));
    } else if (!lost.empty()) {
      std::memcpy(list.get(), lost.data(), lost.size() * sizeof(Range));
      if (!IsWhole(pwrite(fd_.get(), list.get(), ListBytes(lost.size()), Area(header.lost_area)),
                   ListBytes(lost.size())) ||
          fdatasync(fd_.get()) != 0) {
        return -1;
      }
    }
    std::memcpy(page.get(), &header, sizeof header);
    if (!IsWhole(pwrite(fd_.get(), page.get(), kHeaderBytes, 0), kHeaderBytes) ||
        fdatasync(fd_.get()) != 0) {
      return -1;
    }
    header_ = header;
    return 0;
  }
  int FindLost(std::vector<Range>& lost) override {
    lost.clear();
    errno = EIO;
    const bool in_header = header_.lost_area == kInHeader;
    if (header_.lost > (in_header ? kMostInHeader : bytes_ / kPageBytes)) return -1;
    if (header_.lost_area > kInHeader) return -1;
    if (header_.lost == 0) return 0;
    const uint64_t bytes = in_header ? kHeaderBytes : ListBytes(header_.lost);
    const Aligned list = Allocate(bytes);
    if (list == nullptr ||
        !IsWhole(pread(fd_.get(), list.get(), bytes, in_header ? 0 : Area(header_.lost_area)),
                 bytes)) {
      return -1;
    }
    lost.resize(header_.lost);
    std::memcpy(lost.data(), list.get() + (in_header ? kListOffset : 0),
                lost.size() * sizeof(Range));
    for (const Range& range : lost) {
      errno = EIO;
      if (range.begin >= range.end || range.end > bytes_ || range.begin % kPageBytes != 0 ||
          range.end % kPageBytes != 0) {
        return -1;
      }
    }
    return 0;
  }

 private:
  static uint64_t ListBytes(uint64_t ranges) {
    return WholePages(std::max<uint64_t>(ranges, 1) * sizeof(Range));
  }
  static bool IsWhole(ssize_t got, uint64_t wanted) {
    if (got >= 0 && static_cast<uint64_t>(got) != wanted) errno = EIO;
    return got >= 0 && static_cast<uint64_t>(got) == wanted;
  }
  // An area holds a list of as many ranges as there are pages.
  off_t Area(uint64_t number) const {
    return InFile(bytes_ + number * ListBytes(bytes_ / kPageBytes));
  }
  static off_t InFile(uint64_t offset) { return static_cast<off_t>(offset + kHeaderBytes); }

  const UniqueFd fd_;
  const uint64_t bytes_;
  Header header_;  // as it is in the file
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
  return fchmod(fd, 0600) == 0 ? OkStatus() : ErrnoStatus(path);
}

// Whether a file without a header holds nothing: its creation was interrupted. `page` is what it
// begins with.
bool IsEmpty(int fd, const uint8_t* page, size_t length) {
  for (size_t at = 0; at < length; at++) {
    if (page[at] != 0) return false;
  }
  return lseek(fd, static_cast<off_t>(kHeaderBytes), SEEK_DATA) < 0 && errno == ENXIO;
}

}  // namespace

StatusOr<std::unique_ptr<CopyFile>> OpenCopyFile(const std::string& path, uint64_t bytes,
                                                 CopyUse use) {
  const bool keep = use == CopyUse::kContinue;
  UniqueFd fd = OpenWithoutCache(path);
  if (!fd.valid()) return ErrnoStatus(path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Status{EBUSY, path + ": another session uses this disk copy"};
    return ErrnoStatus(path);
  }
  struct stat state {};
  if (fstat(fd.get(), &state) != 0) return ErrnoStatus(path);
  if (S_ISREG(state.st_mode)) {
    if (Status status = MakePrivate(path, fd.get(), state); !status.ok()) return status;
  }
  alignas(CopyFile::kPageBytes) std::array<uint8_t, kHeaderBytes> page{};
  Header header{};
  bool is_copy = false;
  if (S_ISREG(state.st_mode) && state.st_size > 0) {
    const ssize_t got = pread(fd.get(), page.data(), page.size(), 0);
    if (got < 0) return ErrnoStatus(path);
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
    if (state.st_size < static_cast<off_t>(kHeaderBytes + bytes)) {
      return Status{EINVAL, path + ": the copy was cut off"};
    }
    return std::unique_ptr<CopyFile>(std::make_unique<DiskFile>(std::move(fd), header));
  }
  // The header comes last: a file without it is no copy, whatever ended this.
  page.fill(0);
  header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.bytes = bytes;
  header.temporary = use == CopyUse::kTemporary ? 1 : 0;
  std::memcpy(page.data(), &header, sizeof header);
  if (ftruncate(fd.get(), 0) != 0 ||
      ftruncate(fd.get(), static_cast<off_t>(kHeaderBytes + bytes)) != 0 ||
      pwrite(fd.get(), page.data(), page.size(), 0) != static_cast<ssize_t>(page.size()) ||
      fsync(fd.get()) != 0) {
    return ErrnoStatus(path);
  }
  if (Status status = SyncDirectoryOf(path); !status.ok()) return status;
  return std::unique_ptr<CopyFile>(std::make_unique<DiskFile>(std::move(fd), header));
}

}  // namespace rocegw::far
