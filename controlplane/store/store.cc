// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/store.h"

#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

namespace rocegw::store {

namespace {

template <typename Result, typename Start>
StatusOr<Result> Wait(Start&& start) {
  // Shared: the thread that sets the value may still be inside the promise when it was read.
  auto answer = std::make_shared<std::promise<StatusOr<Result>>>();
  auto future = answer->get_future();
  start([answer](StatusOr<Result> result) { answer->set_value(std::move(result)); });
  return future.get();
}

}  // namespace

Status IsCompacted(Revision compacted) {
  return {kCompacted, "revisions before " + std::to_string(compacted + 1) + " are gone"};
}

Status NotYet(Revision revision, Revision newest) {
  return {kFutureRevision, "revision " + std::to_string(revision) +
                               " has not been yet; the newest is " + std::to_string(newest)};
}

StatusOr<TransactionResult> Store::Txn(Transaction transaction) {
  return Wait<TransactionResult>(
      [&](TxnDone done) { TxnHere(std::move(transaction), std::move(done)); });
}

StatusOr<RangeResult> Store::Range(RangeRequest request) {
  return Wait<RangeResult>(
      [&](RangeDone done) { RangeAsync(std::move(request), std::move(done)); });
}

StatusOr<std::optional<Entry>> Store::Get(std::string_view key) {
  RangeRequest request;
  request.range = KeyRange::Key(key);
  StatusOr<RangeResult> result = Range(std::move(request));
  if (!result.ok()) return result.status();
  if (result->entries.empty()) return std::optional<Entry>();
  return std::optional<Entry>(std::move(result->entries.front()));
}

struct BlockingWatch::Signal {
  std::mutex mutex;
  std::condition_variable changed;
  bool ready = false;
  bool interrupted = false;
};

BlockingWatch::BlockingWatch(Store& store, KeyRange range, Revision from)
    : signal_(std::make_shared<Signal>()) {
  auto watch = store.NewWatch(std::move(range), from, [signal = signal_] {
    {
      const std::lock_guard lock(signal->mutex);
      signal->ready = true;
    }
    signal->changed.notify_all();
  });
  opened_ = watch.status();
  if (watch.ok()) watch_ = std::move(*watch);
}

BlockingWatch::~BlockingWatch() = default;

StatusOr<std::optional<Changes>> BlockingWatch::Next(std::chrono::milliseconds timeout) {
  if (!opened_.ok()) return opened_;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    {
      const std::lock_guard lock(signal_->mutex);
      if (signal_->interrupted) return std::optional<Changes>();
      signal_->ready = false;
    }
    auto next = watch_->TryNext();
    if (!next.ok() || next->has_value()) return next;
    std::unique_lock lock(signal_->mutex);
    if (!signal_->changed.wait_until(lock, deadline,
                                     [&] { return signal_->ready || signal_->interrupted; })) {
      return std::optional<Changes>();
    }
  }
}

void BlockingWatch::Interrupt() {
  const std::lock_guard lock(signal_->mutex);
  signal_->interrupted = true;
  signal_->changed.notify_all();
}

}  // namespace rocegw::store
