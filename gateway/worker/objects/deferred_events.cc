// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/deferred_events.h"

#include <algorithm>
#include <utility>

namespace rocegw::worker {
namespace {

constexpr auto kLater = [](const auto& a, const auto& b) { return a.at > b.at; };

}  // namespace

void DeferredEvents::Add(verbs::CompletionQueue& cq) {
  if (cq.due >= cq.timed_at) return;
  cq.timed_at = cq.due;
  entries_.push_back({cq.due, &cq});
  std::push_heap(entries_.begin(), entries_.end(), kLater);
}

void DeferredEvents::Remove(const verbs::CompletionQueue& cq) {
  if (std::erase_if(entries_, [&cq](const Entry& entry) { return entry.cq == &cq; }) != 0)
    std::make_heap(entries_.begin(), entries_.end(), kLater);
}

verbs::CompletionQueue* DeferredEvents::TakeDue(TimePoint now) {
  while (!entries_.empty()) {
    const auto [at, cq] = entries_.front();
    const bool counts = cq->timed_at == at;
    if (counts && at > now && cq->due == at) return nullptr;
    std::pop_heap(entries_.begin(), entries_.end(), kLater);
    entries_.pop_back();
    if (!counts) continue;
    cq->timed_at = kNever;
    if (cq->due <= now) return cq;
    // The event was sent, or is due later.
    Add(*cq);
  }
  return nullptr;
}

}  // namespace rocegw::worker
