// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/listing.h"

#include <utility>

namespace rocegw::far {

bool Listing::Read(Tree& tree, uint64_t offset, std::vector<Entry>* entries) {
  entries->clear();
  Inode* directory = tree.Find(directory_);
  if (directory == nullptr) return true;
  if (offset < 1) entries->push_back({".", directory_, S_IFDIR, 1});
  if (offset < 2) {
    entries->push_back({"..", directory->parent, S_IFDIR, 2});
    offset = 2;
  }
  if (offset < first_) {
    first_ = 2;
    names_.clear();
  }
  // A place behind the names of the last reply is found by going on from them.
  const uint64_t behind = first_ + names_.size();
  const bool far = offset > behind;
  const uint64_t from = far ? behind : offset;
  auto next = directory->names.begin();
  if (from != behind) {
    next = directory->names.lower_bound(names_[from - first_]);
  } else if (!names_.empty()) {
    next = directory->names.upper_bound(names_.back());
  }
  std::vector<std::string> found;
  for (; next != directory->names.end() && found.size() < kMostNames; ++next) {
    found.push_back(next->first);
    if (far) continue;
    entries->push_back(
        {next->first, next->second, tree.Find(next->second)->mode, from + found.size()});
  }
  if (found.empty()) return true;
  first_ = from;
  names_ = std::move(found);
  return !far;
}

}  // namespace rocegw::far
