// SPDX-License-Identifier: Apache-2.0
// Prefetching of queue pairs that are used soon. A worker with many queue pairs finds most of their
// cache lines outside of its caches; fetching them for a whole burst at once costs about the time
// of one fetch. The steps of one queue pair depend on each other, so a burst takes them one after
// the other for all its queue pairs. Reads only; belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/worker/objects/qp_table.h"

namespace rocegw::worker {

class QpBurst {
 public:
  static constexpr size_t kMost = 64;

  explicit QpBurst(QpTable& qps) : qps_(qps) {}

  // Adds the queue pair with this number, if there is one and the burst has space.
  void Add(Qpn qpn) {
    if (count_ == kMost || qpn == last_) return;
    last_ = qpn;
    qps_.PrefetchHandle(qpn);
    numbers_[count_++] = qpn;
  }
  // Prefetches what a message of each queue pair touches. One queue pair alone is used at once, so
  // nothing is gained.
  void Prefetch() {
    if (count_ < 2) return;
    size_t found = 0;
    for (size_t i = 0; i < count_; ++i) {
      const SlotHandle* const handle = qps_.HandleOf(numbers_[i]);
      if (handle != nullptr) slots_[found++] = qps_.PrefetchSlot(*handle);
    }
    for (size_t i = 0; i < found; ++i) __builtin_prefetch(slots_[i]->qp.get());
    for (size_t i = 0; i < found; ++i)
      if (slots_[i]->qp != nullptr) slots_[i]->qp->Prefetch();
    for (size_t i = 0; i < found; ++i)
      if (slots_[i]->qp != nullptr) slots_[i]->qp->PrefetchLinks();
  }

 private:
  QpTable& qps_;
  Qpn last_ = kInvalidQpn;
  size_t count_ = 0;
  std::array<Qpn, kMost> numbers_;
  std::array<const QpSlot*, kMost> slots_;
};

}  // namespace rocegw::worker
