// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/fleet_follower.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "controlplane/model/stored.h"

namespace rocegw::sync {
namespace {

constexpr size_t kPage = 4096;
constexpr auto kRetry = std::chrono::milliseconds(200);

}  // namespace

StatusOr<std::unique_ptr<FleetFollower>> FleetFollower::Start(store::Store& store) {
  std::unique_ptr<FleetFollower> follower(new FleetFollower(store));
  if (Status status = follower->Load(); !status.ok()) return status;
  follower->thread_ = std::thread([raw = follower.get()] { raw->Run(); });
  return follower;
}

FleetFollower::~FleetFollower() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (watch_ != nullptr) watch_->Interrupt();
    stop_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Reads everything at one revision, and starts a watch there.
Status FleetFollower::Load() {
  std::vector<store::Entry> entries;
  store::RangeRequest request{.limit = kPage};
  for (const std::string_view prefix :
       {model::kIntentPrefix, model::kStatusPrefix, model::kGuardPrefix, model::kCertificatePrefix,
        model::kFleetKeysKey, model::kReplicaPrefix}) {
    request.range = store::KeyRange::Prefix(prefix);
    for (;;) {
      StatusOr<store::RangeResult> page = store_.Range(request);
      if (!page.ok()) return page.status();
      request.revision = page->revision;
      std::ranges::move(page->entries, std::back_inserter(entries));
      if (!page->more) break;
      request.range = request.range.After(entries.back().key);
    }
    // The store is empty; revision 0 would mean the newest one, and the watch delivers everything.
    if (request.revision == 0) break;
  }
  auto watch =
      std::make_unique<store::BlockingWatch>(store_, store::KeyRange::All(), request.revision + 1);
  const std::lock_guard lock(mutex_);
  controllers::Load(entries, request.revision, fleet_.view);
  fleet_.placement.Rebuild(fleet_.view);
  fleet_.guards.clear();
  fleet_.certificates.clear();
  fleet_.fleet_keys.reset();
  fleet_.replicas.clear();
  for (const store::Entry& entry : entries) Note({.deleted = false, .entry = entry});
  watch_ = std::move(watch);
  past_.clear();
  remembers_after_ = request.revision;
  status_ = OkStatus();
  return OkStatus();
}

void FleetFollower::Run() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    StatusOr<std::optional<store::Changes>> next = watch_->Next(std::chrono::hours(1));
    std::unique_lock lock(mutex_);
    if (next.ok()) {
      if (next->has_value()) ApplyOne(**next);
    } else {
      status_ = next.status();
      lock.unlock();
      // The compaction has overtaken the watch, or the store is unreachable: loads again.
      while (!Load().ok()) {
        std::unique_lock pause(mutex_);
        if (stop_.wait_for(pause, kRetry, [&] { return stopping_; })) return;
      }
      lock.lock();
      Tell({.everything = true, .changed = {}, .moves = {}});
    }
    const auto reached = TakeReached();
    lock.unlock();
    for (const auto& call : reached) call();
  }
}

void FleetFollower::Tell(const FleetChange& change) {
  for (const auto& [id, listener] : listeners_) listener(fleet_, change);
}

std::vector<std::function<void()>> FleetFollower::TakeReached() {
  std::vector<std::function<void()>> calls;
  const auto end = waiting_.upper_bound(fleet_.view.revision);
  for (auto at = waiting_.begin(); at != end; ++at) calls.push_back(std::move(at->second));
  waiting_.erase(waiting_.begin(), end);
  return calls;
}

// Records keys that are kept beside the objects.
void FleetFollower::Note(const store::Change& change) {
  const store::Entry& entry = change.entry;
  if (entry.key.starts_with(model::kGuardPrefix)) {
    fleet_.guards[entry.key] = entry.mod_revision;
  } else if (entry.key.starts_with(model::kCertificatePrefix)) {
    if (change.deleted) {
      fleet_.certificates.erase(entry.key);
    } else {
      fleet_.certificates[entry.key] = entry;
    }
  } else if (entry.key == model::kFleetKeysKey) {
    fleet_.fleet_keys = change.deleted ? std::nullopt : std::optional(entry);
  } else if (entry.key.starts_with(model::kReplicaPrefix)) {
    const std::string id = entry.key.substr(model::kReplicaPrefix.size());
    if (change.deleted) {
      fleet_.replicas.erase(id);
    } else {
      (void)fleet_.replicas[id].ParseFromString(entry.value);
    }
  }
}

void FleetFollower::ApplyOne(const store::Changes& changes) {
  FleetChange change;
  change.changed = controllers::Apply(changes, fleet_.view);
  change.moves = fleet_.placement.Update(fleet_.view, change.changed);
  for (const store::Change& one : changes.changes) {
    Note(one);
    change.replicas |= one.entry.key.starts_with(model::kReplicaPrefix);
  }
  Remember(changes.revision, change);
  Tell(change);
}

void FleetFollower::WhenReached(store::Revision revision, std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (fleet_.view.revision < revision) {
      waiting_.emplace(revision, std::move(call));
      return;
    }
  }
  call();
}

void FleetFollower::WhenNewest(std::function<void(const StatusOr<store::Revision>&)> call) {
  store_.RangeAsync({.range = store::KeyRange::Key("none"), .limit = 1},
                    [this, call = std::move(call)](const StatusOr<store::RangeResult>& newest) {
                      if (!newest.ok()) return call(newest.status());
                      const store::Revision revision = newest.value().revision;
                      WhenReached(revision, [call, revision] { call(revision); });
                    });
}

FleetFollower::ListenerId FleetFollower::Listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  listeners_[next_listener_] = std::move(listener);
  return next_listener_++;
}

void FleetFollower::Unlisten(ListenerId id) {
  const std::lock_guard lock(mutex_);
  listeners_.erase(id);
}

void FleetFollower::Remember(store::Revision revision, const FleetChange& change) {
  PastChange past{.revision = revision, .names = {}};
  for (const controllers::Changed& changed : change.changed) past.names.push_back(changed.name);
  if (past.names.empty()) return;
  past_.push_back(std::move(past));
  if (past_.size() <= kRemembered) return;
  remembers_after_ = past_.front().revision;
  past_.pop_front();
}

std::optional<PastChange> FleetFollower::NextAfter(store::Revision revision) const {
  if (revision < remembers_after_) return std::nullopt;
  const auto next = std::ranges::upper_bound(past_, revision, {}, &PastChange::revision);
  return next == past_.end() ? PastChange() : *next;
}

Status FleetFollower::status() const {
  const std::lock_guard lock(mutex_);
  return status_.ok() && watch_ != nullptr ? watch_->reach() : status_;
}

}  // namespace rocegw::sync
