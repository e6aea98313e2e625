// SPDX-License-Identifier: Apache-2.0
// Bounded table by address whose space pools share max-min fairly: when it is full, the pool that
// has most entries loses the one that was used longest ago. A program that looks for many addresses
// thus displaces entries of its own pool only. Not safe between threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <map>

#include "gateway/base/ids.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

template <typename Value>
class FairTable {
 public:
  // `capacity`: at least 1.
  explicit FairTable(size_t capacity) : capacity_(capacity) {}

  // Returns nullptr if there is no entry. A found entry counts as used now.
  Value* Find(const wire::Gid& address) {
    const auto found = entries_.find(address);
    if (found == entries_.end()) return nullptr;
    const auto entry = found->second;
    std::list<Entry>& list = by_pool_[entry->pool];
    list.splice(list.end(), list, entry);
    return &entry->value;
  }

  // Likewise, without being a use.
  Value* Peek(const wire::Gid& address) {
    const auto found = entries_.find(address);
    return found == entries_.end() ? nullptr : &found->second->value;
  }

  // Returns the address's new value, which belongs to the pool. A former one is erased.
  Value& Insert(const wire::Gid& address, PoolTag pool) {
    Erase(address);
    if (entries_.size() >= capacity_) Evict();
    std::list<Entry>& list = by_pool_[pool];
    list.push_back({address, pool, {}});
    entries_.emplace(address, std::prev(list.end()));
    return list.back().value;
  }

  void Erase(const wire::Gid& address) {
    const auto found = entries_.find(address);
    if (found == entries_.end()) return;
    const auto entry = found->second;
    entries_.erase(found);
    const auto list = by_pool_.find(entry->pool);
    list->second.erase(entry);
    if (list->second.empty()) by_pool_.erase(list);
  }

  size_t size() const { return entries_.size(); }

  // Calls each(address, value); does not count as a use.
  template <typename Each>
  void ForEach(Each each) {
    for (const auto& [address, entry] : entries_) each(address, entry->value);
  }

 private:
  struct Entry {
    wire::Gid address;
    PoolTag pool;
    Value value;
  };

  void Evict() {
    const auto largest = std::max_element(
        by_pool_.begin(), by_pool_.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    Erase(largest->second.front().address);
  }

  const size_t capacity_;
  std::map<wire::Gid, typename std::list<Entry>::iterator> entries_;
  std::map<PoolTag, std::list<Entry>> by_pool_;  // least recently used first; no list is empty
};

}  // namespace rocegw::port
