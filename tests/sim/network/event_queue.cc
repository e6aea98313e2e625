// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/event_queue.h"

#include <algorithm>

namespace rocegw::sim {
namespace {
constexpr size_t kWays = 4;
}

void EventQueue::At(TimePoint when, EventHandler& handler, uint64_t argument) {
  const Entry entry{std::max(when, now_).ns, next_order_++, &handler, argument};
  size_t hole = heap_.size();
  heap_.push_back(entry);
  while (hole != 0) {
    const size_t parent = (hole - 1) / kWays;
    if (!Before(entry, heap_[parent])) break;
    heap_[hole] = heap_[parent];
    hole = parent;
  }
  heap_[hole] = entry;
}

void EventQueue::Pop() {
  const Entry last = heap_.back();
  heap_.pop_back();
  const size_t size = heap_.size();
  if (size == 0) return;
  size_t hole = 0;
  for (;;) {
    const size_t first = hole * kWays + 1;
    if (first >= size) break;
    size_t least = first;
    const size_t end = std::min(first + kWays, size);
    for (size_t child = first + 1; child < end; ++child) {
      if (Before(heap_[child], heap_[least])) least = child;
    }
    if (!Before(heap_[least], last)) break;
    heap_[hole] = heap_[least];
    hole = least;
  }
  heap_[hole] = last;
}

bool EventQueue::RunOne(TimePoint end) {
  if (heap_.empty() || heap_.front().when > end.ns) return false;
  const Entry entry = heap_.front();
  Pop();
  now_.ns = entry.when;
  ++fired_;
  entry.handler->OnEvent(entry.argument);
  return true;
}

void EventQueue::RunUntil(TimePoint end) {
  while (RunOne(end)) {
  }
  now_ = std::max(now_, end);
}

}  // namespace rocegw::sim
