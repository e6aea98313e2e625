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

bool EventChannel::TrySend(Subject subject, std::span<const uint8_t> record) {
  ssize_t sent = 0;
  do {
    sent = ::send(ours_.get(), record.data(), record.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)) return false;
  // Any other error: the client closed its end. Its events go nowhere, as with a closed event file.
  if (sent >= 0) ++sent_[subject];
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
  if (watch_ == 0) watch_ = loop_.Watch(ours_.get(), EPOLLOUT, [this](uint32_t) { Drain(); });
}

void EventChannel::Drain() {
  while (!waiting_.empty() && TrySend(waiting_.front().subject, waiting_.front().bytes)) {
    waiting_.pop_front();
  }
  if (waiting_.empty()) {
    loop_.Unwatch(watch_);
    watch_ = 0;
  }
}

uint32_t EventChannel::Forget(Subject subject) {
  std::erase_if(waiting_, [&](const Record& r) { return r.subject == subject; });
  const auto it = sent_.find(subject);
  if (it == sent_.end()) return 0;
  const uint32_t count = it->second;
  sent_.erase(it);
  return count;
}

void EventChannel::MoveWaiting(Subject subject, EventChannel& to) {
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
