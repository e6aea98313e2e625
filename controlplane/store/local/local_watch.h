// SPDX-License-Identifier: Apache-2.0
// Watches of backends in this process. A watch has a position and reads on from the backend's
// history on request; the hub wakes waiting watches. The hub belongs to the backend and is thread
// safe; watches must be destroyed before it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "controlplane/store/local/delivery_thread.h"
#include "controlplane/store/store.h"

namespace rocegw::store {

// Part of the history behind a revision.
struct HistoryPage {
  std::vector<Changes> transactions;  // only those that changed keys in the range
  Revision next = 0;                  // next position; unchanged: no changes since
};

class History {
 public:
  virtual ~History() = default;
  // Returns a bounded part of the history from `from` on. kCompacted if `from` is not above the
  // compaction revision.
  virtual StatusOr<HistoryPage> ReadHistory(const KeyRange& range, Revision from) = 0;
  // Returns a revision below which nothing in the range has changed since `from`. nullopt: changed,
  // or known only on disk.
  virtual std::optional<Revision> QuietUntil(const KeyRange& range, Revision from) = 0;
};

class WatchHub {
 public:
  WatchHub(History& history, DeliveryThread& delivery) : history_(history), delivery_(delivery) {}

  std::unique_ptr<Watch> Add(KeyRange range, Revision from, std::function<void()> ready);
  // Reports that history has grown or was compacted: wakes the watches that wait, on the delivery
  // thread. Other watches advance over changes outside their range.
  void Wake();

  // State shared by the hub and one watch.
  struct Waiter {
    Waiter(KeyRange of, Revision from, std::function<void()> wake)
        : range(std::move(of)), ready(std::move(wake)), next(from) {}
    // Advances the position: everything relevant before `revision` was read, or did not exist.
    void GoOn(Revision revision) {
      Revision now = next;
      while (now < revision && !next.compare_exchange_weak(now, revision)) {
      }
    }

    const KeyRange range;
    std::mutex calling;  // held during `ready`
    std::function<void()> ready;
    std::atomic<Revision> next;  // next position
    std::atomic<bool> armed = false;
    bool closed = false;
  };
  // Incremented before arming: otherwise a waiter that is disarmed in between would decrement
  // another one's count, which then would not be woken.
  void Arm(Waiter& waiter) {
    ++armed_;
    if (waiter.armed.exchange(true)) --armed_;
  }
  // Returns true if it was armed.
  bool Disarm(Waiter& waiter) {
    if (!waiter.armed.exchange(false)) return false;
    --armed_;
    return true;
  }

 private:
  void WakeAll();

  History& history_;
  DeliveryThread& delivery_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Waiter>> waiters_;
  std::atomic<bool> wake_posted_ = false;
  std::atomic<int> armed_ = 0;  // at least the number of armed waiters; at zero a writer wakes none
};

}  // namespace rocegw::store
