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
  const Counts& counts = CountsOf(subject);
  Waiting::iterator known = counts.first;
  for (uint32_t i = 0; once && i < counts.waiting; ++i, known = known->next)
    if (std::ranges::equal(known->bytes, record)) return;
  Push(subject, {record.begin(), record.end()});
  CountWaiting();
  Await();
}

void EventChannel::Push(Subject subject, std::vector<uint8_t> bytes) {
  waiting_.push_back({subject, std::move(bytes), ++serial_, {}});
  if (subject != kNobody) ChainLast(std::prev(waiting_.end()));
}

void EventChannel::ChainLast(Waiting::iterator record) {
  Counts& counts = CountsOf(record->subject);
  record->next = waiting_.end();
  (counts.waiting == 0 ? counts.first : counts.last->next) = record;
  counts.last = record;
  ++counts.waiting;
}

void EventChannel::ChainFirst(Waiting::iterator record) {
  Counts& counts = CountsOf(record->subject);
  record->next = counts.waiting == 0 ? waiting_.end() : counts.first;
  if (counts.waiting == 0) counts.last = record;
  counts.first = record;
  ++counts.waiting;
}

void EventChannel::TakeWaiting(Subject subject, Waiting& taken) {
  Counts* const counts = counts_.Find(subject);
  if (counts == nullptr) return;
  for (; counts->waiting != 0; --counts->waiting) {
    const Waiting::iterator record = std::exchange(counts->first, counts->first->next);
    taken.splice(taken.end(), waiting_, record);
  }
}

void EventChannel::Await() {
  if (watch_ == 0 && !held_)
    watch_ = loop_.Watch(ours_.get(), EPOLLOUT, [this](uint32_t) { Drain(); });
}

void EventChannel::Drain() {
  while (!held_ && !waiting_.empty() && TrySend(waiting_.front().subject, waiting_.front().bytes)) {
    if (const Subject subject = waiting_.front().subject; subject != kNobody) {
      Counts& counts = CountsOf(subject);
      counts.first = waiting_.front().next;
      --counts.waiting;
    }
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
  const uint32_t sent = known->sent;
  Waiting forgotten;
  TakeWaiting(subject, forgotten);
  counts_.Erase(subject);
  CountWaiting();
  return sent;
}

void EventChannel::HandOver(hand_over::StateStream& state, std::span<const Subject> subjects) {
  constexpr uint32_t kMostWaiting = 1u << 22;
  auto& [loop, backlog, counted, ours, client_cookie, watch, waiting, serial, held, counts] = *this;
  (void)loop, (void)backlog, (void)counted, (void)ours, (void)watch;  // links of this gateway
  (void)serial;                                                       // drawn again
  state.Require(!held, "events are being taken back");
  uint64_t cookie = client_cookie.value_or(0);
  state(cookie);
  if (state.reading() && cookie != 0) client_cookie = cookie;
  const uint32_t count = state.Count(waiting.size(), kMostWaiting);
  auto at = waiting.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Record record = state.reading() ? Record{} : *at++;
    auto& [subject, bytes, number, next] = record;
    (void)number, (void)next;
    state(subject);
    bytes.resize(state.Count(bytes.size(), kLongestRecord));
    state.Bytes(bytes);
    if (state.reading() && state.ok()) Push(subject, std::move(bytes));
  }
  for (const Subject subject : subjects) {
    if (!state.Carry(counts.Find(subject) != nullptr)) continue;
    auto& [sent, waits, first, last] = CountsOf(subject);
    (void)first, (void)last;  // chained with the records
    state(sent);
    state.Require(state.Carry(waits) == waits, "number of waiting events differs");
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
  // Records of a destroyed object belong to no object. A new object may have its number: its
  // records are the latest, as many as it has sent.
  for (auto bytes = taken.rbegin(); bytes != taken.rend(); ++bytes) {
    const uint64_t front = waiting_.empty() ? ++serial_ : waiting_.front().serial;
    waiting_.push_front({subject_of(*bytes), std::move(*bytes), front - 1, {}});
    Record& record = waiting_.front();
    Counts* const counts = counts_.Find(record.subject);
    if (counts == nullptr || counts->sent == 0) {
      record.subject = kNobody;
      continue;
    }
    --counts->sent;
    ChainFirst(waiting_.begin());
  }
  CountWaiting();
}

void EventChannel::MoveWaiting(EventChannel& to, Subject subject, const Brings& brings) {
  Waiting moved;
  TakeWaiting(subject, moved);
  Waiting brought;
  for (const Record& record : moved)
    if (const auto other = brings(record.bytes)) TakeWaiting(*other, brought);
  moved.splice(moved.end(), brought);
  moved.sort([](const Record& a, const Record& b) { return a.serial < b.serial; });
  for (const Record& record : moved) to.Send(record.subject, record.bytes);
  Drain();
}

}  // namespace rocegw::session
