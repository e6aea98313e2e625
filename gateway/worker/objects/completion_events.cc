// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/completion_events.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace rocegw::worker {

void CompletionEvents::Remove(const verbs::CompletionQueue& cq) {
  std::erase(written_, &cq);
  std::erase(timed_, &cq);
  for (FullChannel& full : full_) std::erase(full.queues, &cq);
  std::erase_if(full_, [](const FullChannel& full) { return full.queues.empty(); });
}

bool CompletionEvents::TrySend(verbs::CompletionQueue& cq) {
  const rocegw_completion_event event{cq.config().cookie, cq.config().cq_handle, 0};
  const ssize_t n = send(cq.config().event_fd, &event, sizeof event, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (n < 0 && errno == EAGAIN) return false;
  if (n < 0) return true;  // the channel's other end is closed
  ++cq.events_sent;
  counters_.cq_event_events.Add();
  return true;
}

CompletionEvents::FullChannel* CompletionEvents::FindFull(const verbs::CompletionQueue& cq) {
  const auto found = std::ranges::find(full_, cq.config().event_fd, &FullChannel::event_fd);
  return found == full_.end() ? nullptr : &*found;
}

void CompletionEvents::WaitForSpace(verbs::CompletionQueue& cq, TimePoint retry) {
  FullChannel* full = FindFull(cq);
  if (full == nullptr)
    full = &full_.emplace_back(FullChannel{.event_fd = cq.config().event_fd, .retry = retry});
  full->queues.push_back(&cq);
  cq.event_pending = true;
}

void CompletionEvents::SendIfDue(verbs::CompletionQueue& cq) {
  const bool event = cq.TakeEvent(round_.now);
  if (cq.due != kNever && !cq.timed) {
    cq.timed = true;
    timed_.push_back(&cq);
  }
  if (!event || cq.event_pending) return;
  // Earlier events of the channel come first.
  if (FindFull(cq) != nullptr || !TrySend(cq)) WaitForSpace(cq, round_.now + kFirstRetry);
}

// Sends what fits into the channel now.
void CompletionEvents::SendToFull(FullChannel& full) {
  size_t sent = 0;
  bool fits = true;
  while (fits && sent < full.queues.size()) {
    verbs::CompletionQueue& cq = *full.queues[sent];
    fits = TrySend(cq);
    scheduler_.Note(*sessions_.Of(cq).account, 1, 0);
    if (!fits) continue;
    cq.event_pending = false;
    ++sent;
  }
  full.queues.erase(full.queues.begin(), full.queues.begin() + static_cast<ptrdiff_t>(sent));
  full.wait = sent != 0 ? kFirstRetry : std::min(full.wait * 2, kLongestRetry);
  full.retry = round_.now + full.wait;
}

void CompletionEvents::Send() {
  scheduler_.Mark();
  for (verbs::CompletionQueue* cq : written_) {
    cq->listed = false;
    if (const uint32_t woken = cq->WakePollers(); woken != 0) counters_.cq_wake_events.Add(woken);
    SendIfDue(*cq);
    scheduler_.Note(*sessions_.Of(*cq).account, 1, 0);
  }
  written_.clear();
  for (FullChannel& full : full_)
    if (full.retry <= round_.now) SendToFull(full);
  std::erase_if(full_, [](const FullChannel& full) { return full.queues.empty(); });
  scheduler_.ChargeNoted();
  if (timed_.empty()) return;
  std::erase_if(timed_, [&](verbs::CompletionQueue* cq) {
    if (cq->due <= round_.now) SendIfDue(*cq);
    cq->timed = cq->due != kNever;
    return !cq->timed;
  });
}

TimePoint CompletionEvents::NextDue() const {
  TimePoint next = kNever;
  for (const verbs::CompletionQueue* cq : timed_) next = Earlier(next, cq->due);
  for (const FullChannel& full : full_) next = Earlier(next, full.retry);
  return next;
}

}  // namespace rocegw::worker
