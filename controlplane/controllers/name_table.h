// SPDX-License-Identifier: Apache-2.0
// Numbers for names, for relations between very many objects: a relation is a sorted vector of
// numbers, where sets of names would take a hundred bytes per pair. A number belongs to its name
// until it is released, then to another name. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rocegw::controllers {

// Sorted, without duplicates.
using Ids = std::vector<uint32_t>;

// Returns false if it was present.
inline bool Insert(uint32_t id, Ids& ids) {
  const auto at = std::ranges::lower_bound(ids, id);
  if (at != ids.end() && *at == id) return false;
  ids.insert(at, id);
  return true;
}

inline void Erase(uint32_t id, Ids& ids) {
  const auto at = std::ranges::lower_bound(ids, id);
  if (at != ids.end() && *at == id) ids.erase(at);
}

inline bool Contains(uint32_t id, const Ids& ids) { return std::ranges::binary_search(ids, id); }

class NameTable {
 public:
  std::optional<uint32_t> Find(std::string_view name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  // Reuses released numbers, so that tables by number do not grow without limit.
  uint32_t Add(std::string_view name) {
    if (const auto known = Find(name)) return *known;
    uint32_t id = static_cast<uint32_t>(names_.size());
    if (free_.empty()) {
      names_.emplace_back(name);
    } else {
      id = free_.back();
      free_.pop_back();
      names_[id] = name;
    }
    ids_.emplace(std::string(name), id);
    return id;
  }
  void Remove(uint32_t id) {
    ids_.erase(ids_.find(names_[id]));
    names_[id].clear();
    free_.push_back(id);
  }
  const std::string& NameOf(uint32_t id) const { return names_[id]; }
  // Upper bound of all numbers.
  size_t bound() const { return names_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::vector<std::string> names_;
  std::vector<uint32_t> free_;
};

// Names of numbers, in arbitrary order. Valid while table and numbers exist unchanged.
class NameRange {
 public:
  class Iterator {
   public:
    using value_type = std::string;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    Iterator(const NameTable* table, Ids::const_iterator at) : table_(table), at_(at) {}
    const std::string& operator*() const { return table_->NameOf(*at_); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const NameTable* table_ = nullptr;
    Ids::const_iterator at_;
  };

  NameRange(const NameTable& table, const Ids& ids) : table_(table), ids_(ids) {}
  Iterator begin() const { return {&table_, ids_.begin()}; }
  Iterator end() const { return {&table_, ids_.end()}; }
  size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  bool contains(std::string_view name) const {
    const auto id = table_.Find(name);
    return id.has_value() && Contains(*id, ids_);
  }
  std::set<std::string> Sorted() const { return {begin(), end()}; }

 private:
  const NameTable& table_;
  const Ids& ids_;
};

}  // namespace rocegw::controllers
