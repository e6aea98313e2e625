// SPDX-License-Identifier: Apache-2.0
// Latest transactions of a store whose revisions have no gaps, in memory, so that watches that keep
// up never read the disk. Bounded in number and bytes. Thread safe.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "controlplane/store/local/local_watch.h"
#include "controlplane/store/transaction.h"

namespace rocegw::store {

class RecentChanges {
 public:
  static constexpr size_t kMaxTransactions = 4096;
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  void Append(Changes changes);
  // Returns the range's changes from `from` on; nullopt if `from` is older than the memory.
  std::optional<HistoryPage> Read(const KeyRange& range, Revision from) const;
  // See History::QuietUntil.
  std::optional<Revision> QuietUntil(const KeyRange& range, Revision from) const;

 private:
  struct Kept {
    std::shared_ptr<const Changes> changes;
    size_t bytes;
  };

  mutable std::mutex mutex_;
  std::deque<Kept> kept_;
  size_t bytes_ = 0;
};

// Returns true if a transaction changed keys in the range, and the part of it that did.
bool Concerns(const Changes& changes, const KeyRange& range);
Changes Visible(const Changes& changes, const KeyRange& range);

}  // namespace rocegw::store
