// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/local/memory_store.h"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "controlplane/store/local/delivery_thread.h"
#include "controlplane/store/local/local_watch.h"
#include "controlplane/store/local/recent_changes.h"
#include "controlplane/store/random_uuid.h"

namespace rocegw::store {
namespace {

constexpr size_t kMemoryPage = 256;

// Value of a key from a revision on.
struct Version {
  Revision since = 0;
  bool deleted = false;
  Entry entry;
};

class MemoryStoreImpl : public MemoryStore, private History {
 public:
  const std::string& uuid() const override { return uuid_; }
  std::string_view backend() const override { return "memory"; }
  void TxnAsync(Transaction transaction, TxnDone done) override { done(Apply(transaction)); }
  void RangeAsync(RangeRequest request, RangeDone done) override { done(Read(request)); }
  StatusOr<std::unique_ptr<Watch>> NewWatch(KeyRange range, Revision from,
                                            std::function<void()> ready) override;
  Status Compact(Revision revision) override;
  StatusOr<std::unique_ptr<Lease>> NewLease(std::chrono::seconds time_to_live,
                                            std::function<void()> lost) override;
  void ExpireLease(LeaseId id) override;

  bool LeaseAlive(LeaseId id) {
    const std::lock_guard lock(mutex_);
    return leases_.contains(id);
  }
  // Deletes its keys. Returns false if it had ended already.
  bool EndLease(LeaseId id, std::function<void()>* lost);

 private:
  StatusOr<TransactionResult> Apply(const Transaction& transaction);
  StatusOr<RangeResult> Read(const RangeRequest& request);
  StatusOr<HistoryPage> ReadHistory(const KeyRange& range, Revision from) override;
  std::optional<Revision> QuietUntil(const KeyRange& range, Revision from) override;
  // Returns the key's entry at a revision, nullptr if absent.
  const Entry* At(const std::string& key, Revision revision) const;
  void Write(const Operation& operation, Changes* changes);
  // Makes the collected changes, if any, the newest revision.
  void Commit(Changes changes);

  const std::string uuid_ = RandomUuid();
  std::mutex mutex_;
  std::map<std::string, std::vector<Version>> keys_;
  std::deque<std::shared_ptr<const Changes>> log_;  // above the compaction revision
  std::map<LeaseId, std::function<void()>> leases_;
  Revision revision_ = 0;
  Revision compacted_ = 0;
  LeaseId last_lease_ = 0;
  WatchHub hub_{*this, delivery_};
  DeliveryThread delivery_;  // destroyed first, since its work uses the hub
};

class MemoryLease : public Lease {
 public:
  MemoryLease(MemoryStoreImpl& store, LeaseId id) : store_(store), id_(id) {}
  ~MemoryLease() override {
    std::function<void()> lost;
    store_.EndLease(id_, &lost);
  }
  LeaseId id() const override { return id_; }
  bool alive() const override { return store_.LeaseAlive(id_); }

 private:
  MemoryStoreImpl& store_;
  const LeaseId id_;
};

const Entry* MemoryStoreImpl::At(const std::string& key, Revision revision) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  const auto& versions = found->second;
  auto after =
      std::upper_bound(versions.begin(), versions.end(), revision,
                       [](Revision r, const Version& version) { return r < version.since; });
  if (after == versions.begin()) return nullptr;
  --after;
  return after->deleted ? nullptr : &after->entry;
}

void MemoryStoreImpl::Write(const Operation& operation, Changes* changes) {
  const Revision now = changes->revision;
  const Entry* old = At(operation.key, now);
  Version version{.since = now, .deleted = operation.kind == Operation::Kind::kDelete, .entry = {}};
  version.entry.key = operation.key;
  version.entry.mod_revision = now;
  if (!version.deleted) {
    version.entry.value = operation.value;
    version.entry.create_revision = old != nullptr ? old->create_revision : now;
    version.entry.lease = operation.lease;
  } else if (old == nullptr) {
    return;
  }
  changes->changes.push_back({version.deleted, version.entry});
  keys_[operation.key].push_back(std::move(version));
}

void MemoryStoreImpl::Commit(Changes changes) {
  if (changes.changes.empty()) return;
  revision_ = changes.revision;
  log_.push_back(std::make_shared<const Changes>(std::move(changes)));
  hub_.Wake();
}

StatusOr<TransactionResult> MemoryStoreImpl::Apply(const Transaction& transaction) {
  if (Status status = transaction.Validate(); !status.ok()) return status;
  const std::lock_guard lock(mutex_);
  TransactionResult result;
  result.succeeded = std::all_of(
      transaction.compares.begin(), transaction.compares.end(),
      [this](const Compare& compare) { return compare.Holds(At(compare.key, revision_)); });
  const auto& branch = result.succeeded ? transaction.then : transaction.otherwise;
  for (const Operation& operation : branch) {
    if (operation.lease != 0 && !leases_.contains(operation.lease)) {
      return Status(kLeaseGone, "lease " + std::to_string(operation.lease) + " has ended");
    }
  }
  Changes changes{revision_ + 1, {}};
  for (const Operation& operation : branch) {
    OperationResult& done = result.results.emplace_back();
    const Entry* old = At(operation.key, revision_);
    if (operation.kind == Operation::Kind::kGet) {
      if (old != nullptr) done.entry = *old;
    } else {
      done.deleted = operation.kind == Operation::Kind::kDelete && old != nullptr;
      Write(operation, &changes);
    }
  }
  Commit(std::move(changes));
  result.revision = revision_;
  return result;
}

StatusOr<RangeResult> MemoryStoreImpl::Read(const RangeRequest& request) {
  const std::lock_guard lock(mutex_);
  RangeResult result;
  result.revision = request.revision == 0 ? revision_ : request.revision;
  if (result.revision < compacted_) return IsCompacted(compacted_);
  if (result.revision < 0 || result.revision > revision_) {
    return NotYet(request.revision, revision_);
  }
  for (auto it = keys_.lower_bound(request.range.begin);
       it != keys_.end() && request.range.Contains(it->first); ++it) {
    const Entry* entry = At(it->first, result.revision);
    if (entry == nullptr) continue;
    if (request.limit != 0 && result.entries.size() == request.limit) {
      result.more = true;
      break;
    }
    result.entries.push_back(*entry);
    if (request.keys_only) result.entries.back().value.clear();
  }
  return result;
}

StatusOr<HistoryPage> MemoryStoreImpl::ReadHistory(const KeyRange& range, Revision from) {
  const std::lock_guard lock(mutex_);
  if (from <= compacted_) return IsCompacted(compacted_);
  HistoryPage page;
  page.next = from;
  // The log contains every revision above the compaction revision.
  for (size_t i = static_cast<size_t>(from - compacted_ - 1);
       i < log_.size() && page.transactions.size() < kMemoryPage; ++i) {
    Changes visible = Visible(*log_[i], range);
    if (!visible.changes.empty()) page.transactions.push_back(std::move(visible));
    page.next = log_[i]->revision + 1;
  }
  return page;
}

std::optional<Revision> MemoryStoreImpl::QuietUntil(const KeyRange& range, Revision from) {
  const std::lock_guard lock(mutex_);
  if (from <= compacted_) return std::nullopt;
  for (auto i = static_cast<size_t>(from - compacted_ - 1); i < log_.size(); ++i, ++from) {
    if (Concerns(*log_[i], range)) return std::nullopt;
  }
  return from;
}

StatusOr<std::unique_ptr<Watch>> MemoryStoreImpl::NewWatch(KeyRange range, Revision from,
                                                           std::function<void()> ready) {
  if (from < 1) return Status(kInvalid, "a watch begins at revision 1 or later");
  {
    const std::lock_guard lock(mutex_);
    if (from <= compacted_) return IsCompacted(compacted_);
  }
  return hub_.Add(std::move(range), from, std::move(ready));
}

Status MemoryStoreImpl::Compact(Revision revision) {
  {
    const std::lock_guard lock(mutex_);
    if (revision > revision_) {
      return {kFutureRevision, "the newest revision is " + std::to_string(revision_)};
    }
    if (revision <= compacted_) return OkStatus();
    log_.erase(log_.begin(), log_.begin() + (revision - compacted_));
    compacted_ = revision;
    for (auto it = keys_.begin(); it != keys_.end();) {
      auto& versions = it->second;
      auto keep =
          std::upper_bound(versions.begin(), versions.end(), revision,
                           [](Revision r, const Version& version) { return r < version.since; });
      if (keep != versions.begin() && !std::prev(keep)->deleted) --keep;
      versions.erase(versions.begin(), keep);
      it = versions.empty() ? keys_.erase(it) : std::next(it);
    }
  }
  hub_.Wake();
  return OkStatus();
}

StatusOr<std::unique_ptr<Lease>> MemoryStoreImpl::NewLease(std::chrono::seconds,
                                                           std::function<void()> lost) {
  const std::lock_guard lock(mutex_);
  leases_[++last_lease_] = std::move(lost);
  return std::unique_ptr<Lease>(std::make_unique<MemoryLease>(*this, last_lease_));
}

bool MemoryStoreImpl::EndLease(LeaseId id, std::function<void()>* lost) {
  const std::lock_guard lock(mutex_);
  const auto found = leases_.find(id);
  if (found == leases_.end()) return false;
  *lost = std::move(found->second);
  leases_.erase(found);
  Changes changes{revision_ + 1, {}};
  std::vector<std::string> keys;
  for (const auto& [key, versions] : keys_) {
    if (!versions.back().deleted && versions.back().entry.lease == id) keys.push_back(key);
  }
  for (const std::string& key : keys) Write(Operation::Delete(key), &changes);
  Commit(std::move(changes));
  return true;
}

void MemoryStoreImpl::ExpireLease(LeaseId id) {
  std::function<void()> lost;
  if (EndLease(id, &lost) && lost) delivery_.Post(std::move(lost));
}

}  // namespace

std::unique_ptr<MemoryStore> NewMemoryStore() { return std::make_unique<MemoryStoreImpl>(); }

}  // namespace rocegw::store
