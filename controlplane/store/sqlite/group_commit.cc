// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/sqlite/group_commit.h"

#include <algorithm>
#include <utility>

namespace rocegw::store {
namespace {

constexpr size_t kMaxGroup = 512;
constexpr size_t kMaxWaiting = 8192;
constexpr size_t kMaxWaitingBytes = size_t{64} << 20;

size_t BytesOf(const Transaction& transaction) {
  size_t bytes = 0;
  for (const auto& compare : transaction.compares) bytes += compare.key.size();
  for (const auto* branch : {&transaction.then, &transaction.otherwise}) {
    for (const Operation& operation : *branch)
      bytes += operation.key.size() + operation.value.size();
  }
  return bytes;
}

}  // namespace

GroupCommit::GroupCommit(SqliteDatabase& database, Position position, Observer& observer)
    : database_(database),
      history_(database),
      observer_(observer),
      position_(position),
      next_(position),
      thread_([this] { Run(); }) {}

GroupCommit::~GroupCommit() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    posted_.notify_one();
    left_.wait(lock, [this] { return guests_ == 0; });
  }
  thread_.join();
}

void GroupCommit::Post(Transaction transaction, Store::TxnDone done) {
  Take(std::move(transaction), std::move(done), false);
}

void GroupCommit::WriteOrPost(Transaction transaction, Store::TxnDone done) {
  Take(std::move(transaction), std::move(done), true);
}

void GroupCommit::Take(Transaction transaction, Store::TxnDone done, bool may_write) {
  const size_t bytes = BytesOf(transaction);
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    return done(Status(kClosed, "the store is being closed"));
  }
  if (jobs_.size() >= kMaxWaiting || waiting_bytes_ + bytes > kMaxWaitingBytes) {
    lock.unlock();
    return done(Status(kUnavailable, "too many transactions wait for the disk"));
  }
  if (may_write && !writing_ && jobs_.empty()) {
    writing_ = true;
    ++guests_;
    lock.unlock();
    std::deque<Job> alone;
    alone.emplace_back(Write{std::move(transaction), std::move(done)});
    RunGroup(std::move(alone));
    lock.lock();
    if (--guests_ == 0 && stopping_) left_.notify_one();
    return;
  }
  waiting_bytes_ += bytes;
  jobs_.emplace_back(Write{std::move(transaction), std::move(done)});
  // A writing thread checks for more work when it has finished.
  const bool wake = jobs_.size() == 1 && !writing_;
  lock.unlock();
  // Without the lock, for which the thread would wait at once.
  if (wake) posted_.notify_one();
}

void GroupCommit::PostCompaction(Revision revision, std::function<void(Status)> done) {
  const std::lock_guard lock(mutex_);
  jobs_.emplace_back(Compaction{revision, std::move(done)});
  posted_.notify_one();
}

void GroupCommit::PostLeaseEnd(LeaseId lease, std::function<void(Status)> done) {
  const std::lock_guard lock(mutex_);
  jobs_.emplace_back(LeaseEnd{lease, std::move(done)});
  posted_.notify_one();
}

LeaseId GroupCommit::NewLease() {
  const std::lock_guard lock(mutex_);
  leases_.insert(++last_lease_);
  return last_lease_;
}

bool GroupCommit::HasWork() const {
  return !jobs_.empty() || (broken_.ok() && position_.swept < position_.compacted);
}

void GroupCommit::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return !writing_ && (stopping_ || HasWork()); });
    // The sweep continues after the next start.
    if (jobs_.empty() && stopping_) return;
    writing_ = true;
    std::deque<Job> group = TakeGroup();
    lock.unlock();
    RunGroup(std::move(group));
    lock.lock();
  }
}

void GroupCommit::StopWriting() {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    wake = stopping_ || HasWork();
  }
  if (wake) posted_.notify_one();
}

std::deque<GroupCommit::Job> GroupCommit::TakeGroup() {
  std::deque<Job> group;
  while (!jobs_.empty() && group.size() < kMaxGroup) {
    if (const auto* write = std::get_if<Write>(&jobs_.front())) {
      waiting_bytes_ -= BytesOf(write->transaction);
    }
    group.push_back(std::move(jobs_.front()));
    jobs_.pop_front();
  }
  return group;
}

void GroupCommit::RunGroup(std::deque<Job> jobs) {
  std::vector<Answer> answers;
  answers.reserve(jobs.size());
  group_.clear();
  next_ = position_;
  Status status = ApplyGroup(std::move(jobs), &answers);
  if (status.ok()) status = Commit();
  const bool changed = status.ok() && (!group_.empty() || next_.compacted != position_.compacted);
  if (status.ok()) {
    if (!group_.empty()) observer_.Committed(std::move(group_));
    if (next_.compacted != position_.compacted) observer_.Compacted(next_.compacted);
    position_ = next_;
  }
  StopWriting();
  if (answers.size() == 1) {
    answers.front()(status);
  } else if (!answers.empty()) {
    // Waking many threads costs about as much as a sync: the next group need not wait for it.
    acknowledgements_.Post([answers = std::move(answers), status] {
      for (const Answer& answer : answers) answer(status);
    });
  }
  if (changed) observer_.Acknowledged();
}

Status GroupCommit::ApplyGroup(std::deque<Job> jobs, std::vector<Answer>* answers) {
  Status status = broken_;
  if (status.ok()) {
    status = begin_.Run();
    if (status.error() == kInUse) status = Status(kUnavailable, status.text());
  }
  for (Job& job : jobs) {
    // A transaction that cannot be written fails its whole group.
    if (auto* write = std::get_if<Write>(&job)) {
      auto result = status.ok() ? ApplyWrite(write->transaction) : status;
      if (!result.ok() && result.status().error() != kLeaseGone) status = result.status();
      answers->push_back([done = std::move(write->done), result = std::move(result)](
                             const Status& group) { done(group.ok() ? result : group); });
      continue;
    }
    auto* compaction = std::get_if<Compaction>(&job);
    auto* lease_end = std::get_if<LeaseEnd>(&job);
    auto& done = compaction != nullptr ? compaction->done : lease_end->done;
    Status result = status;
    if (result.ok()) {
      result = compaction != nullptr ? ApplyCompaction(compaction->revision)
                                     : ApplyLeaseEnd(lease_end->lease);
    }
    if (!result.ok() && result.error() != kFutureRevision) status = result;
    answers->push_back([done = std::move(done), result](const Status& group) {
      done(group.ok() ? result : group);
    });
  }
  if (status.ok() && position_.swept < position_.compacted) {
    const auto swept = history_.Sweep(position_.swept, position_.compacted);
    status = swept.status();
    if (swept.ok()) next_.swept = swept.value();
  }
  if (!status.ok()) {
    // Uncommitted changes are gone even if the rollback fails.
    static_cast<void>(database_.Execute("ROLLBACK"));
    if (status.error() != kFull && status.error() != kUnavailable) broken_ = status;
  }
  return status;
}

Status GroupCommit::Commit() {
  Status status = commit_.Run();
  if (status.ok()) return status;
  static_cast<void>(database_.Execute("ROLLBACK"));
  // With a full disk the commit record was not written. After any other error it may be on disk or
  // not, and another sync proves nothing.
  if (status.error() == kFull) return status;
  broken_ = Status(EIO, status.text() + "; the store takes no more writes until it is opened anew");
  return {kOutcomeUnknown, status.text()};
}

Status GroupCommit::CheckLeases(const std::vector<Operation>& operations) {
  const std::lock_guard lock(mutex_);
  for (const Operation& operation : operations) {
    if (operation.lease != 0 && !leases_.contains(operation.lease)) {
      return {kLeaseGone, "lease " + std::to_string(operation.lease) + " has ended"};
    }
  }
  return OkStatus();
}

Status GroupCommit::Append(Changes* changes, Change change) {
  change.entry.mod_revision = changes->revision;
  Status status =
      history_.Append(changes->revision, static_cast<int64_t>(changes->changes.size()), change);
  if (status.ok()) changes->changes.push_back(std::move(change));
  return status;
}

void GroupCommit::Finish(Changes changes) {
  if (changes.changes.empty()) return;
  next_.revision = changes.revision;
  group_.push_back(std::move(changes));
}

StatusOr<TransactionResult> GroupCommit::ApplyWrite(const Transaction& transaction) {
  TransactionResult result;
  result.succeeded = true;
  for (const Compare& compare : transaction.compares) {
    const auto entry = history_.Find(compare.key);
    if (!entry.ok()) return entry.status();
    if (!compare.Holds(entry.value().has_value() ? &*entry.value() : nullptr)) {
      result.succeeded = false;
      break;
    }
  }
  const auto& branch = result.succeeded ? transaction.then : transaction.otherwise;
  if (Status status = CheckLeases(branch); !status.ok()) return status;
  Changes changes{next_.revision + 1, {}};
  for (const Operation& operation : branch) {
    auto old = history_.Find(operation.key);
    if (!old.ok()) return old.status();
    const bool existed = old->has_value();
    OperationResult& done = result.results.emplace_back();
    if (operation.kind == Operation::Kind::kGet) {
      done.entry = std::move(*old);
      continue;
    }
    Change change;
    change.entry.key = operation.key;
    if (operation.kind == Operation::Kind::kDelete) {
      if (!existed) continue;
      done.deleted = true;
      change.deleted = true;
    } else {
      change.entry.value = operation.value;
      change.entry.lease = operation.lease;
      change.entry.create_revision = existed ? old->value().create_revision : changes.revision;
    }
    if (Status status = Append(&changes, std::move(change)); !status.ok()) return status;
  }
  Finish(std::move(changes));
  result.revision = next_.revision;
  return result;
}

Status GroupCommit::ApplyCompaction(Revision revision) {
  if (revision > next_.revision) {
    return {kFutureRevision, "the newest revision is " + std::to_string(next_.revision)};
  }
  if (revision <= next_.compacted) return OkStatus();
  Status status = history_.MarkCompacted(revision);
  if (status.ok()) next_.compacted = revision;
  return status;
}

Status GroupCommit::ApplyLeaseEnd(LeaseId lease) {
  {
    const std::lock_guard lock(mutex_);
    leases_.erase(lease);
  }
  const auto keys = lease == 0 ? history_.KeysOfLeases() : history_.KeysOfLease(lease);
  if (!keys.ok()) return keys.status();
  Changes changes{next_.revision + 1, {}};
  for (const std::string& key : keys.value()) {
    const auto entry = history_.Find(key);
    if (!entry.ok()) return entry.status();
    // A later put may have detached it from the lease.
    const bool mine = entry.value().has_value() &&
                      (lease == 0 ? entry.value()->lease != 0 : entry.value()->lease == lease);
    if (!mine) continue;
    Change change;
    change.deleted = true;
    change.entry.key = key;
    if (Status status = Append(&changes, std::move(change)); !status.ok()) return status;
  }
  Finish(std::move(changes));
  return OkStatus();
}

}  // namespace rocegw::store
