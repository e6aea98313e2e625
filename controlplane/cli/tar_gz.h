// SPDX-License-Identifier: Apache-2.0
// A gzipped tar archive in memory: regular files with mode 0600, in the ustar format
// (POSIX.1-2001).
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::cli {

class TarGz {
 public:
  // time: of all its files, seconds since 1970.
  explicit TarGz(int64_t time) : time_(time) {}

  // Names of at most 100 bytes; longer ones are cut.
  void Add(const std::string& name, const std::string& content);

  // The archive; empty: no memory to compress it.
  std::string Finish() const;

 private:
  int64_t time_;
  std::string tar_;
};

}  // namespace rocegw::cli
