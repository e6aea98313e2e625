// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/revocations.h"

#include <chrono>
#include <utility>
#include <vector>

#include "controlplane/identity/enrollment.h"
#include "controlplane/model/stored.h"

namespace rocegw::identity {
namespace {

using model::kCertificatePrefix;

constexpr std::chrono::milliseconds kRetry(200);
constexpr std::chrono::hours kForever(24);

}  // namespace

// Listener. The mutex is held during a call, and taken again by the same thread if the call
// destroys its object.
struct Revocations::Listening::Ear {
  PeerCertificate certificate;
  std::recursive_mutex mutex;
  std::function<void()> ended;

  void Call() {
    const std::lock_guard lock(mutex);
    const auto call = std::exchange(ended, nullptr);
    if (call) call();
  }
};

struct Revocations::Listening::Ears {
  std::mutex mutex;
  std::multimap<std::string, std::shared_ptr<Ear>> by_path;
};

Revocations::Listening::~Listening() {
  {
    const std::lock_guard lock(ears_->mutex);
    auto [begin, end] = ears_->by_path.equal_range(ear_->certificate.path);
    for (; begin != end; ++begin) {
      if (begin->second != ear_) continue;
      ears_->by_path.erase(begin);
      break;
    }
  }
  const std::lock_guard lock(ear_->mutex);
  ear_->ended = nullptr;
}

Revocations::Revocations(store::Store& store)
    : store_(store), ears_(std::make_shared<Listening::Ears>()) {}

StatusOr<std::unique_ptr<Revocations>> Revocations::Start(store::Store& store) {
  std::unique_ptr<Revocations> revocations(new Revocations(store));
  if (Status status = revocations->Load(); !status.ok()) return status;
  revocations->thread_ = std::thread([raw = revocations.get()] { raw->Run(); });
  return revocations;
}

Revocations::~Revocations() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (watch_ != nullptr) watch_->Interrupt();
    stop_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_lock lock(mutex_);
  stop_.wait(lock, [this] { return writes_ == 0; });
}

Status Revocations::Load() {
  auto range = store_.Range({.range = store::KeyRange::Prefix(kCertificatePrefix)});
  if (!range.ok()) return range.status();
  {
    const std::lock_guard lock(mutex_);
    known_.clear();
    for (const store::Entry& entry : range->entries) Put(entry);
    revision_ = range->revision;
    status_ = OkStatus();
    watch_ = std::make_unique<store::BlockingWatch>(
        store_, store::KeyRange::Prefix(kCertificatePrefix), revision_ + 1);
    if (stopping_) watch_->Interrupt();
  }
  TellEnded();
  return OkStatus();
}

void Revocations::Run() {
  for (;;) {
    auto next = watch_->Next(kForever);
    if (next.ok() && next->has_value()) {
      Apply(**next);
      continue;
    }
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    if (next.ok()) continue;
    // Reads everything again after the watch was interrupted.
    do {
      status_ = next.status();
      if (stop_.wait_for(lock, kRetry, [this] { return stopping_; })) return;
      lock.unlock();
      Status loaded = Load();
      lock.lock();
      if (loaded.ok()) break;
      next = std::move(loaded);
    } while (!stopping_);
  }
}

void Revocations::Put(const store::Entry& entry) {
  Known known{.entry = entry, .record = {}};
  if (!known.record.ParseFromString(entry.value)) return;
  known_[entry.key.substr(kCertificatePrefix.size())] = std::move(known);
}

void Revocations::Apply(const store::Changes& changes) {
  {
    const std::lock_guard lock(mutex_);
    for (const store::Change& change : changes.changes) {
      if (change.deleted) {
        known_.erase(change.entry.key.substr(kCertificatePrefix.size()));
      } else {
        Put(change.entry);
      }
    }
    revision_ = changes.revision;
  }
  TellEnded();
}

bool Revocations::IsGoodLocked(const PeerCertificate& certificate) const {
  const auto known = known_.find(certificate.path);
  // Without a record nothing was revoked: a lost store must not lock everyone out.
  return known == known_.end() || certificate.serial >= known->second.record.least_serial();
}

bool Revocations::IsGood(const PeerCertificate& certificate) {
  bool first_use = false;
  {
    const std::lock_guard lock(mutex_);
    if (!IsGoodLocked(certificate)) return false;
    const auto known = known_.find(certificate.path);
    first_use = known != known_.end() && !certificate.serial.empty() &&
                known->second.record.next_serial() == certificate.serial &&
                noting_.insert(certificate.serial).second;
  }
  if (first_use) NoteFirstUse(certificate);
  return true;
}

void Revocations::NoteFirstUse(const PeerCertificate& certificate) {
  std::optional<Step> step;
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(certificate.path);
    if (known != known_.end() && !stopping_) {
      step = PlanFirstUse(certificate.path, certificate.serial, known->second.entry);
    }
    if (!step.has_value()) {
      noting_.erase(certificate.serial);
      return;
    }
    ++writes_;
  }
  store_.TxnAsync({.compares = step->compares, .then = step->operations, .otherwise = {}},
                  [this, serial = certificate.serial](const auto&) {
                    // After a failure the next use tries again.
                    const std::lock_guard lock(mutex_);
                    noting_.erase(serial);
                    --writes_;
                    stop_.notify_all();
                  });
}

void Revocations::TellEnded() {
  std::vector<std::shared_ptr<Listening::Ear>> ended;
  {
    const std::scoped_lock lock(mutex_, ears_->mutex);
    std::erase_if(ears_->by_path, [&](const auto& one) {
      if (IsGoodLocked(one.second->certificate)) return false;
      ended.push_back(one.second);
      return true;
    });
  }
  for (const auto& ear : ended) ear->Call();
}

std::unique_ptr<Revocations::Listening> Revocations::Listen(PeerCertificate certificate,
                                                            std::function<void()> ended) {
  auto ear = std::make_shared<Listening::Ear>();
  ear->certificate = std::move(certificate);
  ear->ended = std::move(ended);
  bool good = false;
  {
    const std::scoped_lock lock(mutex_, ears_->mutex);
    good = IsGoodLocked(ear->certificate);
    if (good) ears_->by_path.emplace(ear->certificate.path, ear);
  }
  if (!good) ear->Call();
  return std::unique_ptr<Listening>(new Listening(ears_, ear));
}

Status Revocations::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace rocegw::identity
