// SPDX-License-Identifier: Apache-2.0
// The last transactions of a store whose revisions have no gaps, in memory, so that watches which
// keep up never read the disk. Bounded in number and bytes. Thread safe.
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
  // What the range saw from `from` on; nullopt when `from` is further back than memory reaches.
  std::optional<HistoryPage> Read(const KeyRange& range, Revision from) const;
  // As History::QuietUntil.
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

// Whether a transaction changed anything in a range, and the part of it that did.
bool Concerns(const Changes& changes, const KeyRange& range);
Changes Visible(const Changes& changes, const KeyRange& range);

}  // namespace rocegw::store
