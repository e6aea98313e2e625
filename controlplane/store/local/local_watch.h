// SPDX-License-Identifier: Apache-2.0
// Watches of the backends that live in this process. A watch holds a revision and reads on from the
// backend's history when it is asked; the hub wakes those that wait. The hub belongs to the backend
// and is thread safe; watches must be gone before it.
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

// Some of what follows a revision.
struct HistoryPage {
  std::vector<Changes> transactions;  // only those that touched the range
  Revision next = 0;                  // read on from here; unchanged: nothing has happened since
};

class History {
 public:
  virtual ~History() = default;
  // From `from` on, a bounded piece. kCompacted when `from` is not above the compaction point.
  virtual StatusOr<HistoryPage> ReadHistory(const KeyRange& range, Revision from) = 0;
  // A revision below which nothing in the range has changed from `from` on. nullopt: something has,
  // or only the disk could tell.
  virtual std::optional<Revision> QuietUntil(const KeyRange& range, Revision from) = 0;
};

class WatchHub {
 public:
  WatchHub(History& history, DeliveryThread& delivery) : history_(history), delivery_(delivery) {}

  std::unique_ptr<Watch> Add(KeyRange range, Revision from, std::function<void()> ready);
  // History has grown, or a part of it is gone: watches that wait for it are woken, on the delivery
  // thread. Others only go on to the end of what does not concern them.
  void Wake();

  // What hub and watch share of one watch.
  struct Waiter {
    Waiter(KeyRange of, Revision from, std::function<void()> wake)
        : range(std::move(of)), ready(std::move(wake)), next(from) {}
    // All that concerns it before `revision` has been read, or there was nothing.
    void GoOn(Revision revision) {
      Revision now = next;
      while (now < revision && !next.compare_exchange_weak(now, revision)) {
      }
    }

    const KeyRange range;
    std::mutex calling;  // held while ready runs
    std::function<void()> ready;
    std::atomic<Revision> next;  // it reads on from here
    std::atomic<bool> armed = false;
    bool closed = false;
  };
  // Counted before it is armed: were it the other way round, a waiter that is disarmed in between
  // would take the count of another one away, which then nobody wakes.
  void Arm(Waiter& waiter) {
    ++armed_;
    if (waiter.armed.exchange(true)) --armed_;
  }
  // Whether it was.
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
  std::atomic<int> armed_ = 0;  // at least so many waiters; without any a writer wakes nobody
};

}  // namespace rocegw::store
