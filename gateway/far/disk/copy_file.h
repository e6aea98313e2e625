// SPDX-License-Identifier: Apache-2.0
// File that a disk copy is kept in, as an interface, so that tests can have one that fails. Calls
// are made by one thread. Offsets are those of the copied space.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/status.h"

namespace rocegw::far {

class CopyFile {
 public:
  // Offsets, lengths and addresses that Read and Write get are multiples of this.
  static constexpr uint64_t kPageBytes = 4096;

  virtual ~CopyFile() = default;
  // As pread(2), pwrite(2): bytes, which may be fewer than asked for, or -1 and errno.
  virtual ssize_t Read(uint8_t* buffer, uint64_t length, uint64_t offset) = 0;
  virtual ssize_t Write(const uint8_t* data, uint64_t length, uint64_t offset) = 0;
  // Makes the range read as zero and gives its room back. Returns 0 or -1 and errno.
  virtual int Punch(uint64_t offset, uint64_t length) = 0;
  // Waits until all writes are on the disk. Returns 0 or -1 and errno.
  virtual int Sync() = 0;
  // Calls `found` for each range that may hold data. Returns 0 or -1 and errno.
  using Found = std::function<void(uint64_t begin, uint64_t end)>;
  virtual int FindData(const Found& found) = 0;
  // Ranges of pages whose data is lost: a later session must not take what the file holds for it.
  // A list replaces the one before as a whole, and is on the disk when the call returns. Both
  // return 0 or -1 and errno.
  struct Range {
    uint64_t begin;
    uint64_t end;
    bool operator==(const Range&) const = default;
  };
  virtual int SetLost(const std::vector<Range>& lost) = 0;
  virtual int FindLost(std::vector<Range>& lost) = 0;
};

enum class CopyUse : uint8_t {
  kContinue,   // the space begins with what the file holds
  kStart,      // the space begins with zeroes; a later session may continue
  kTemporary,  // the space begins with zeroes; no later session continues
};

// Opens or creates the file for a space of `bytes`. EEXIST: the file holds something else, or a
// temporary copy was asked for and it holds another one. EBUSY: another session uses it. EINVAL: it
// cannot be continued, because it is the copy of a space of another size or a temporary one. EPERM:
// it is another user's, or has hard links.
StatusOr<std::unique_ptr<CopyFile>> OpenCopyFile(const std::string& path, uint64_t bytes,
                                                 CopyUse use);

}  // namespace rocegw::far
