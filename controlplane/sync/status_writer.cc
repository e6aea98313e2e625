// SPDX-License-Identifier: Apache-2.0
#include "controlplane/sync/status_writer.h"

#include "controlplane/model/stored.h"

namespace rocegw::sync {
namespace {

constexpr size_t kMostInTransaction = 64;
constexpr size_t kMostBytes = store::kMaxTransactionBytes / 2;

}  // namespace

StatusWriter::StatusWriter(store::Store& store, std::chrono::milliseconds interval)
    : store_(store), interval_(interval), thread_([this] { Run(); }) {}

StatusWriter::~StatusWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void StatusWriter::Set(const model::ResourceName& name, std::string value) {
  const std::lock_guard lock(mutex_);
  dirty_[model::KeyOf(model::Part::kStatus, name)] = {model::KeyOf(model::Part::kIntent, name),
                                                      std::move(value)};
  wake_.notify_all();
}

void StatusWriter::Flush() {
  std::unique_lock lock(mutex_);
  hurry_ = true;
  wake_.notify_all();
  written_.wait(lock, [this] { return (dirty_.empty() && !busy_) || stopping_; });
  hurry_ = false;
}

void StatusWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !dirty_.empty(); });
    if (dirty_.empty()) return;
    // Changes within the interval are combined.
    wake_.wait_for(lock, interval_, [this] { return stopping_ || hurry_; });
    auto dirty = std::move(dirty_);
    dirty_.clear();
    busy_ = true;
    lock.unlock();
    bool reached = true;
    while (!dirty.empty() && reached) {
      Batch batch;
      size_t bytes = 0;
      for (auto at = dirty.begin(); at != dirty.end() && batch.size() < kMostInTransaction; ++at) {
        bytes += at->second.second.size() + at->first.size();
        if (!batch.empty() && bytes > kMostBytes) break;
        batch.emplace_back(*at);
      }
      reached = Write(batch);
      if (!reached) break;
      for (const auto& [key, value] : batch) dirty.erase(key);
    }
    lock.lock();
    busy_ = false;
    // Statuses that were set meanwhile are newer.
    dirty_.merge(dirty);
    if (stopping_ && !reached) return;
    if (!reached) wake_.wait_for(lock, interval_, [this] { return stopping_; });
    if (dirty_.empty()) written_.notify_all();
  }
}

bool StatusWriter::Write(const Batch& batch) {
  store::Transaction transaction;
  for (const auto& [key, status] : batch) {
    transaction.compares.push_back(store::Compare::Exists(status.first));
    transaction.then.push_back(store::Operation::Put(key, status.second));
  }
  const auto result = store_.Txn(std::move(transaction));
  if (!result.ok()) {
    // A status that the store can never accept is not retried.
    return result.status().error() == store::kInvalid;
  }
  if (result.value().succeeded || batch.size() == 1) return true;
  // An object of the batch was deleted.
  bool reached = true;
  for (const auto& one : batch) reached = Write({one}) && reached;
  return reached;
}

}  // namespace rocegw::sync
