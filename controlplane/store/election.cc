// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/election.h"

#include <condition_variable>
#include <utility>

namespace rocegw::store {

struct Election::Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false;
  bool raised = false;  // an event may have occurred

  void Raise() {
    {
      const std::lock_guard lock(mutex);
      raised = true;
    }
    changed.notify_all();
  }
  bool Stopped() {
    const std::lock_guard lock(mutex);
    return stop;
  }
  void Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return std::exchange(raised, false) || stop; });
  }
  void WaitUnlessStopped(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, time, [this] { return stop; });
  }
};

Election::Election(Store& store, Options options,
                   std::function<void(const std::optional<Term>&)> changed)
    : store_(store),
      options_(std::move(options)),
      changed_(std::move(changed)),
      signal_(std::make_shared<Signal>()),
      thread_([this] { Run(); }) {}

Election::~Election() {
  {
    const std::lock_guard lock(signal_->mutex);
    signal_->stop = true;
    signal_->changed.notify_all();
  }
  thread_.join();
}

std::optional<Term> Election::term() const {
  const std::lock_guard lock(mutex_);
  return term_;
}

void Election::SetTerm(const std::optional<Term>& term) {
  {
    const std::lock_guard lock(mutex_);
    if (term_ == term) return;
    term_ = term;
  }
  if (changed_) changed_(term);
}

void Election::Run() {
  std::unique_ptr<Lease> lease;
  while (!signal_->Stopped()) {
    if (lease == nullptr || !lease->alive()) {
      SetTerm(std::nullopt);
      lease.reset();
      auto granted =
          store_.NewLease(options_.time_to_live, [signal = signal_] { signal->Raise(); });
      if (!granted.ok()) {
        signal_->WaitUnlessStopped(options_.retry);
        continue;
      }
      lease = std::move(*granted);
    }
    const auto seen = Campaign(*lease);
    const Status status = seen.ok() ? AwaitChange(seen.value() + 1, *lease) : seen.status();
    if (!status.ok()) signal_->WaitUnlessStopped(options_.retry);
  }
  SetTerm(std::nullopt);
}

StatusOr<Revision> Election::Campaign(Lease& lease) {
  Transaction transaction;
  transaction.compares = {Compare::Absent(options_.key)};
  transaction.then = {Operation::Put(options_.key, options_.candidate, lease.id())};
  transaction.otherwise = {Operation::Get(options_.key)};
  auto result = store_.Txn(std::move(transaction));
  // Also if the outcome is unknown: the next attempt finds the key under our lease, or absent.
  if (!result.ok()) return result.status();
  Revision epoch = result->revision;
  bool mine = result->succeeded;
  if (!mine && result->results.front().entry.has_value()) {
    const Entry& entry = *result->results.front().entry;
    mine = entry.lease == lease.id();
    epoch = entry.create_revision;
  }
  if (mine && lease.alive()) {
    SetTerm(Term{epoch, Compare::CreatedAt(options_.key, epoch)});
  } else {
    SetTerm(std::nullopt);
  }
  return result->revision;
}

Status Election::AwaitChange(Revision from, const Lease& lease) {
  auto watch =
      store_.NewWatch(KeyRange::Key(options_.key), from, [signal = signal_] { signal->Raise(); });
  if (!watch.ok()) return watch.status();
  while (!signal_->Stopped() && lease.alive()) {
    auto next = (*watch)->TryNext();
    if (!next.ok()) return next.status();
    if (next->has_value()) break;
    signal_->Wait();
  }
  return OkStatus();
}

}  // namespace rocegw::store
