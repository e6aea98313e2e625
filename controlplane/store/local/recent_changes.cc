// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/local/recent_changes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rocegw::store {
namespace {

constexpr size_t kRecentPage = 256;

}  // namespace

bool Concerns(const Changes& changes, const KeyRange& range) {
  return std::ranges::any_of(
      changes.changes, [&](const Change& change) { return range.Contains(change.entry.key); });
}

Changes Visible(const Changes& changes, const KeyRange& range) {
  Changes visible{changes.revision, {}};
  for (const Change& change : changes.changes) {
    if (range.Contains(change.entry.key)) visible.changes.push_back(change);
  }
  return visible;
}

void RecentChanges::Append(Changes changes) {
  size_t bytes = 0;
  for (const Change& change : changes.changes) {
    bytes += sizeof(change) + change.entry.key.size() + change.entry.value.size();
  }
  auto shared = std::make_shared<const Changes>(std::move(changes));
  const std::lock_guard lock(mutex_);
  kept_.push_back({std::move(shared), bytes});
  bytes_ += bytes;
  while (kept_.size() > kMaxTransactions || bytes_ > kMaxBytes) {
    bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
}

std::optional<HistoryPage> RecentChanges::Read(const KeyRange& range, Revision from) const {
  std::vector<std::shared_ptr<const Changes>> some;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.empty() || from < kept_.front().changes->revision) return std::nullopt;
    auto index = static_cast<size_t>(from - kept_.front().changes->revision);
    for (; index < kept_.size() && some.size() < kRecentPage; ++index) {
      some.push_back(kept_[index].changes);
    }
  }
  HistoryPage page{{}, from};
  for (const auto& changes : some) {
    Changes visible = Visible(*changes, range);
    if (!visible.changes.empty()) page.transactions.push_back(std::move(visible));
    page.next = changes->revision + 1;
  }
  return page;
}

std::optional<Revision> RecentChanges::QuietUntil(const KeyRange& range, Revision from) const {
  const std::lock_guard lock(mutex_);
  if (kept_.empty() || from < kept_.front().changes->revision) return std::nullopt;
  auto index = static_cast<size_t>(from - kept_.front().changes->revision);
  for (; index < kept_.size(); ++index, ++from) {
    if (Concerns(*kept_[index].changes, range)) return std::nullopt;
  }
  return from;
}

}  // namespace rocegw::store
