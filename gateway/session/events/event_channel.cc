// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/events/event_channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/socket_cookie.h"

namespace rocegw::session {
namespace {

// Longest record of any kind of event.
constexpr size_t kLongestRecord = 1024;
constexpr size_t kMostUnread = 4096;
constexpr EventChannel::Subject kNobody = 0;

}  // namespace

StatusOr<EventPair> MakeEventPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status(errno, std::string("event channel: ") + std::strerror(errno));
  }
  EventPair pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::shutdown(pair.ours.get(), SHUT_RD);
  return pair;
}

EventChannel::EventChannel(ControlLoop& loop, EventBacklog& backlog, UniqueFd ours, int client_end)
    : loop_(loop),
      backlog_(backlog),
      ours_(std::move(ours)),
      client_cookie_(CookieOf(client_end)) {}

EventChannel::~EventChannel() {
  loop_.Unwatch(watch_);
  waiting_.clear();
  CountWaiting();
}

void EventChannel::CountWaiting() {
  const size_t before = std::exchange(counted_, waiting_.size());
  backlog_.waiting += counted_ - before;
  if (counted_ < before && backlog_.on_fewer) backlog_.on_fewer();
}

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
  // Any other error: the client closed its end. The events are dropped, as with a closed event
  // file.
  if (sent >= 0 && subject != kNobody) ++CountsOf(subject).sent;
  return true;
}

void EventChannel::Send(Subject subject, std::span<const uint8_t> record, bool once) {
  if (!held_ && waiting_.empty() && TrySend(subject, record)) return;
  Counts& counts = CountsOf(subject);
  // Searches only if the subject has records waiting: thousands of others may wait.
  if (once && counts.waiting != 0 &&
      std::any_of(waiting_.begin(), waiting_.end(), [&](const Record& r) {
        return r.subject == subject && std::ranges::equal(r.bytes, record);
      })) {
    return;
  }
  waiting_.push_back({subject, {record.begin(), record.end()}});
  ++counts.waiting;
  CountWaiting();
  Await();
}

void EventChannel::Await() {
  if (watch_ == 0 && !held_)
    watch_ = loop_.Watch(ours_.get(), EPOLLOUT, [this](uint32_t) { Drain(); });
}

void EventChannel::Drain() {
  while (!held_ && !waiting_.empty() && TrySend(waiting_.front().subject, waiting_.front().bytes)) {
    const Subject subject = waiting_.front().subject;
    if (subject != kNobody) --CountsOf(subject).waiting;
    waiting_.pop_front();
  }
  if (!held_ && !waiting_.empty()) {
    Await();
  } else {
    loop_.Unwatch(watch_);
    watch_ = 0;
  }
  CountWaiting();
}

uint32_t EventChannel::Forget(Subject subject) {
  const Counts* const known = counts_.Find(subject);
  if (known == nullptr) return 0;
  const Counts counts = *known;
  counts_.Erase(subject);
  // Thousands of records may wait for a slow program.
  if (counts.waiting != 0)
    std::erase_if(waiting_, [&](const Record& r) { return r.subject == subject; });
  CountWaiting();
  return counts.sent;
}

void EventChannel::HandOver(hand_over::StateStream& state, std::span<const Subject> subjects) {
  constexpr uint32_t kMostWaiting = 1u << 22;
  auto& [loop, backlog, counted, ours, client_cookie, watch, waiting, held, counts] = *this;
  (void)loop, (void)backlog, (void)counted, (void)ours, (void)watch;  // links of this gateway
  state.Require(!held, "events are being taken back");
  uint64_t cookie = client_cookie.value_or(0);
  state(cookie);
  if (state.reading() && cookie != 0) client_cookie = cookie;
  const uint32_t count = state.Count(waiting.size(), kMostWaiting);
  if (state.reading()) waiting.resize(count);
  for (auto& [subject, bytes] : waiting) {
    state(subject);
    bytes.resize(state.Count(bytes.size(), kLongestRecord));
    state.Bytes(bytes);
  }
  for (const Subject subject : subjects) {
    if (!state.Carry(counts.Find(subject) != nullptr)) continue;
    auto& [sent, waits] = CountsOf(subject);
    state(sent, waits);
  }
  if (!state.reading() || !state.ok()) return;
  CountWaiting();
  if (!waiting.empty()) Await();
}

EventChannel::Unread EventChannel::ReadUnread(int client_end) {
  Unread unread;
  std::array<uint8_t, kLongestRecord> buffer;
  while (true) {
    const ssize_t got = ::recv(client_end, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    unread.emplace_back(buffer.begin(), buffer.begin() + got);
    // Limited to what a socket holds, so that a program that adds records cannot keep its call
    // queue busy.
    if (unread.size() == kMostUnread) break;
  }
  return unread;
}

void EventChannel::TakeBack(Unread taken, SubjectOf subject_of) {
  held_ = false;
  std::vector<Record> unread;
  for (std::vector<uint8_t>& bytes : taken) {
    const Subject subject = subject_of(bytes);
    unread.push_back({subject, std::move(bytes)});
  }
  // Records of a destroyed object belong to no object. A new object may have its number: its
  // records are the latest, as many as it has sent.
  for (auto record = unread.rbegin(); record != unread.rend(); ++record) {
    Counts* const counts = counts_.Find(record->subject);
    if (counts == nullptr || counts->sent == 0) {
      record->subject = kNobody;
      continue;
    }
    --counts->sent;
    ++counts->waiting;
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(unread.begin()),
                  std::make_move_iterator(unread.end()));
  CountWaiting();
}

void EventChannel::MoveWaiting(EventChannel& to, const Choice& chosen) {
  std::deque<Record> kept;
  for (Record& record : waiting_) {
    if (record.subject != kNobody && chosen(record.subject, record.bytes)) {
      --CountsOf(record.subject).waiting;
      to.Send(record.subject, record.bytes);
    } else {
      kept.push_back(std::move(record));
    }
  }
  waiting_ = std::move(kept);
  Drain();
}

}  // namespace rocegw::session
