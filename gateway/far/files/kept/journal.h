// SPDX-License-Identifier: Apache-2.0
// File that keeps records: a header, then commits. A commit is there as a whole or not at all,
// whatever ends the process or the host. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::far {

class Journal {
 public:
  // Purpose of a journal.
  struct Kind {
    const char* magic;  // begins the file; at most 23 characters
    const char* what;   // for messages
    bool secret;        // other users must not read it
  };
  static constexpr Kind kNames{"rocegw file names 1\n", "names of files", false};
  static constexpr Kind kPlacement{"rocegw placement 1\n", "placement of files", true};

  // Opens the file, or nothing: *exists says which. `records` gets those of all commits. `bytes` is
  // the size of the space that they describe. EBUSY: another process uses the file. EINVAL: it
  // holds something else, or describes a space of another size. EPERM: it is another user's, or
  // others can read its secrets.
  static StatusOr<std::unique_ptr<Journal>> Open(const std::string& path, uint64_t bytes,
                                                 std::string* records, bool* exists,
                                                 const Kind& kind = kNames);

  // Adds a commit; it is on the disk when the call returns. When that fails the file has the
  // commits that it had before.
  Status Append(std::string_view records);
  // Replaces all commits by one, or none when that fails.
  Status Replace(std::string_view records);
  uint64_t size() const { return size_; }

 private:
  Journal(std::string path, uint64_t bytes, const Kind& kind, UniqueFd lock)
      : path_(std::move(path)), bytes_(bytes), kind_(kind), lock_(std::move(lock)) {}
  Status Write(int fd, std::string_view text, uint64_t offset) const;

  const std::string path_;
  const uint64_t bytes_;
  const Kind kind_;
  UniqueFd lock_;      // a file beside it: the journal itself is replaced
  UniqueFd fd_;        // invalid: there is no file yet
  uint64_t size_ = 0;  // behind the last commit
};

}  // namespace rocegw::far
