// SPDX-License-Identifier: Apache-2.0
// Gzipped tar archive in memory: regular files with mode 0600, in the ustar format (POSIX.1-2001).
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::cli {

class TarGz {
 public:
  // `time`: modification time of all files, seconds since 1970.
  explicit TarGz(int64_t time) : time_(time) {}

  // Adds a file. Names longer than 100 bytes are truncated.
  void Add(const std::string& name, const std::string& content);

  // Returns the archive; empty: out of memory.
  std::string Finish() const;

 private:
  int64_t time_;
  std::string tar_;
};

}  // namespace rocegw::cli
