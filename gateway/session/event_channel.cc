// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/event_channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace rocegw::session {

StatusOr<EventPair> MakeEventPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status(errno, std::string("event channel: ") + std::strerror(errno));
  }
  EventPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::shutdown(pair.ours.get(), SHUT_RD);
  return pair;
}

EventChannel::~EventChannel() { loop_.Unwatch(watch_); }

EventChannel::Counts& EventChannel::CountsOf(Subject subject) {
  counts_.Insert(subject, {});
  return *counts_.Find(subject);
}

bool EventChannel::TrySend(Subject subject, std::span<const uint8_t> record) {
  ssize_t sent = 0;
  do {
    sent = ::send(ours_.get(), record.data(), record.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)) return false;
  // Any other error: the client closed its end. Its events go nowhere, as with a closed event file.
  if (sent >= 0) ++CountsOf(subject).sent;
  return true;
}

void EventChannel::Send(Subject subject, std::span<const uint8_t> record, bool once) {
  if (waiting_.empty() && TrySend(subject, record)) return;
  if (once && std::any_of(waiting_.begin(), waiting_.end(), [&](const Record& r) {
        return r.subject == subject && std::ranges::equal(r.bytes, record);
      })) {
    return;
  }
  waiting_.push_back({subject, {record.begin(), record.end()}});
  ++CountsOf(subject).waiting;
  if (watch_ == 0) watch_ = loop_.Watch(ours_.get(), EPOLLOUT, [this](uint32_t) { Drain(); });
}

void EventChannel::Drain() {
  while (!waiting_.empty() && TrySend(waiting_.front().subject, waiting_.front().bytes)) {
    --CountsOf(waiting_.front().subject).waiting;
    waiting_.pop_front();
  }
  if (waiting_.empty()) {
    loop_.Unwatch(watch_);
    watch_ = 0;
  }
}

uint32_t EventChannel::Forget(Subject subject) {
  const Counts* const known = counts_.Find(subject);
  if (known == nullptr) return 0;
  const Counts counts = *known;
  counts_.Erase(subject);
  // Thousands may wait for a program that is slow to read, of others.
  if (counts.waiting != 0)
    std::erase_if(waiting_, [&](const Record& r) { return r.subject == subject; });
  return counts.sent;
}

void EventChannel::MoveWaiting(Subject subject, EventChannel& to) {
  const Counts* const known = counts_.Find(subject);
  if (known == nullptr || known->waiting == 0) return;
  CountsOf(subject).waiting = 0;
  std::deque<Record> kept;
  for (Record& record : waiting_) {
    if (record.subject == subject) {
      to.Send(subject, record.bytes);
    } else {
      kept.push_back(std::move(record));
    }
  }
  waiting_ = std::move(kept);
}

}  // namespace rocegw::session
