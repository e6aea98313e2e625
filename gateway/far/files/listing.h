// SPDX-License-Identifier: Apache-2.0
// Position of a program in a directory that it reads. Holds the names of one reply only, whatever
// the size of the directory. A name that is there from the first reply to the last one is listed
// once. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gateway/far/files/tree.h"

namespace rocegw::far {

class Listing {
 public:
  // Names that a reply may hold, and that a search for a place passes under one lock.
  static constexpr size_t kMostNames = 256;

  struct Entry {
    std::string name;
    uint64_t number = 0;
    mode_t mode = 0;
    uint64_t offset = 0;  // a later Read goes on there
  };

  explicit Listing(uint64_t directory) : directory_(directory) {}

  // Sets *entries to those at the offset, at most kMostNames; none: the end, or the directory was
  // removed. Returns false when the place is still to be found: the same call again, after the lock
  // of the tree was free for others.
  bool Read(Tree& tree, uint64_t offset, std::vector<Entry>* entries);

 private:
  const uint64_t directory_;
  // Names of the last reply, and the offset of the first one. Offsets 0 and 1 are "." and "..".
  uint64_t first_ = 2;
  std::vector<std::string> names_;
};

}  // namespace rocegw::far
