// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/completion_events.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace rocegw::worker {

void CompletionEvents::Remove(const verbs::CompletionQueue& cq) {
  std::erase(written_, &cq);
  deferred_.Remove(cq);
  const auto full = full_.find(cq.config().event_fd);
  if (full == full_.end()) return;
  std::erase(full->second.queues, &cq);
  if (full->second.queues.empty()) Forget(full);
}

void CompletionEvents::Forget(Full::iterator channel) {
  retries_.erase({channel->second.retry, channel->first});
  full_.erase(channel);
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

void CompletionEvents::WaitForSpace(verbs::CompletionQueue& cq, TimePoint retry) {
  const auto [full, added] =
      full_.try_emplace(cq.config().event_fd, FullChannel{.queues = {}, .retry = retry});
  if (added) retries_.emplace(retry, cq.config().event_fd);
  full->second.queues.push_back(&cq);
  cq.event_pending = true;
}

void CompletionEvents::SendIfDue(verbs::CompletionQueue& cq) {
  const bool event = cq.TakeEvent(round_.now);
  if (!cq.has_channel()) return;
  if (cq.due != kNever) deferred_.Add(cq);
  if (!event || cq.event_pending) return;
  // Earlier events of the channel come first.
  if (full_.contains(cq.config().event_fd) || !TrySend(cq))
    WaitForSpace(cq, round_.now + kFirstRetry);
}

// Tries the channels whose time has come, the oldest first.
void CompletionEvents::SendToFull() {
  for (int i = 0; i < kChannelsPerRound && !retries_.empty(); ++i) {
    const auto [retry, fd] = *retries_.begin();
    if (retry > round_.now) return;
    const auto full = full_.find(fd);
    SendTo(full->second);
    retries_.erase(retries_.begin());
    if (full->second.queues.empty()) {
      full_.erase(full);
    } else {
      retries_.emplace(full->second.retry, fd);
    }
  }
}

// Sends what fits into the channel now.
void CompletionEvents::SendTo(FullChannel& full) {
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

void CompletionEvents::SendToWritten() {
  if (written_.empty()) return;
  const verbs::VisibleCompletions visible;
  for (verbs::CompletionQueue* cq : written_) {
    cq->listed = false;
    if (const uint32_t woken = cq->WakePollers(visible); woken != 0)
      counters_.cq_wake_events.Add(woken);
    SendIfDue(*cq);
    scheduler_.Note(*sessions_.Of(*cq).account, 1, 0);
  }
  written_.clear();
}

void CompletionEvents::Send() {
  scheduler_.Mark();
  SendToWritten();
  SendToFull();
  if (deferred_.size() != 0) SendDeferred();
  scheduler_.ChargeNoted();
}

void CompletionEvents::SendDeferred() {
  while (verbs::CompletionQueue* const cq = deferred_.TakeDue(round_.now)) {
    SendIfDue(*cq);
    scheduler_.Note(*sessions_.Of(*cq).account, 1, 0);
  }
}

TimePoint CompletionEvents::NextDue() const {
  const TimePoint next = deferred_.next();
  return retries_.empty() ? next : Earlier(next, retries_.begin()->first);
}

}  // namespace rocegw::worker
