// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/completion_events.h"

#include <sys/socket.h>

#include <cerrno>

namespace rocegw::worker {

void CompletionEvents::Remove(const verbs::CompletionQueue& cq) {
  std::erase(written_, &cq);
  std::erase(timed_, &cq);
  std::erase(unsent_, &cq);
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

void CompletionEvents::SendIfDue(verbs::CompletionQueue& cq) {
  const bool event = cq.TakeEvent(round_.now);
  if (cq.due != kNever && !cq.timed) {
    cq.timed = true;
    timed_.push_back(&cq);
  }
  if (!event || cq.event_pending || TrySend(cq)) return;
  cq.event_pending = true;
  unsent_.push_back(&cq);
}

void CompletionEvents::Send() {
  // A channel holds some hundred events; queues whose event does not fit wait in unsent_, once
  // each.
  if (!unsent_.empty()) {
    std::erase_if(unsent_, [&](verbs::CompletionQueue* cq) {
      if (!TrySend(*cq)) return false;
      cq->event_pending = false;
      return true;
    });
  }
  scheduler_.Mark();
  for (verbs::CompletionQueue* cq : written_) {
    cq->listed = false;
    if (const uint32_t woken = cq->WakePollers(); woken != 0) counters_.cq_wake_events.Add(woken);
    SendIfDue(*cq);
    scheduler_.Note(*sessions_.Of(*cq).account, 1, 0);
  }
  written_.clear();
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
  return next;
}

}  // namespace rocegw::worker
