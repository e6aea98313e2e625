// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/kept/keeper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace rocegw::far {
namespace {

// Changes that no program asks for are kept within this time.
constexpr auto kEvery = std::chrono::seconds(5);
// A journal is written anew when it is larger, and four times as large as its tree needs.
constexpr uint64_t kLeastJournal = 4 << 20;

}  // namespace

Keeper::Keeper(std::unique_ptr<Journal> journal, Calls calls)
    : journal_(std::move(journal)), calls_(std::move(calls)) {}

void Keeper::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Keeper::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void Keeper::Sync(Done done) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(done));
  wake_.notify_all();
}

void Keeper::Hurry() {
  const std::lock_guard lock(mutex_);
  hurry_ = true;
  wake_.notify_all();
}

void Keeper::Run() {
  pthread_setname_np(pthread_self(), "rocegw-far-keep");
  for (;;) {
    std::vector<Done> answered;
    bool asked = false;
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kEvery, [this] { return stop_ || hurry_ || !waiting_.empty(); });
      answered.swap(waiting_);
      asked = !answered.empty() || hurry_ || stop_;
      hurry_ = false;
      last = stop_;
    }
    const Status status = Commit(asked);
    for (const Done& done : answered) done(status.ok() ? 0 : -status.error());
    if (last) return;
  }
}

Status Keeper::Commit(bool asked) {
  // The records describe data that may still be on its way: it is flushed before they are written.
  if (everything_) {
    records_ = calls_.record(true);
  } else {
    records_ += calls_.record(false);
  }
  if (!asked && records_.empty()) {
    calls_.committed(true);
    return OkStatus();
  }
  const int flushed = calls_.flush();
  Status status = flushed == 0 ? OkStatus() : Status{-flushed, "the data is not kept"};
  if (status.ok() && everything_) {
    status = journal_->Replace(records_);
    if (status.ok()) most_bytes_ = std::max(kLeastJournal, 4 * journal_->size());
  } else if (status.ok() && !records_.empty()) {
    status = journal_->Append(records_);
  }
  if (status.ok()) {
    records_.clear();
    everything_ = journal_->size() > most_bytes_;
  }
  calls_.committed(status.ok());
  return status;
}

}  // namespace rocegw::far
