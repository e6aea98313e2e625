// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/workers/worker_requests.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

namespace rocegw::session {

WorkerRequests::WorkerRequests(const std::vector<worker::WorkerLink*>& links) {
  links_.reserve(links.size());
  for (worker::WorkerLink* link : links)
    links_.push_back({.worker = link, .waiting = {}, .heard = {}});
}

bool WorkerRequests::Push(Link& link, const worker::ControlMessage& message) {
  return link.worker->to_worker.Push(worker::ControlMessage(message));
}

void WorkerRequests::Queue(WorkerIndex worker, const worker::ControlMessage& message) {
  Link& link = links_[worker];
  if (held_ || !link.waiting.empty() || !Push(link, message)) {
    link.waiting.push_back(message);
  }
  link.wake = true;
}

void WorkerRequests::Send(WorkerIndex worker, const Body& body, Continuation done) {
  const uint64_t cookie = next_cookie_++;
  continuations_.emplace(cookie, std::move(done));
  if (links_[worker].owed++ == 0) links_[worker].heard = ControlLoop::Now();
  Queue(worker, {cookie, body});
}

bool WorkerRequests::TryTell(WorkerIndex worker, const Body& body, Haste haste) {
  Link& link = links_[worker];
  if (held_ || !link.waiting.empty() || !Push(link, {0, body})) return false;
  link.wake = link.wake || haste == Haste::kNow;
  return true;
}

void WorkerRequests::Tell(WorkerIndex worker, const Body& body) { Queue(worker, {0, body}); }

void WorkerRequests::TellAll(const Body& body) {
  for (size_t i = 0; i < links_.size(); ++i) Tell(static_cast<WorkerIndex>(i), body);
}

void WorkerRequests::Broadcast(const BodyFor& body_for, Continuation done) {
  struct Gathering {
    size_t missing;
    worker::ControlReply total;
    Continuation done;
  };
  auto gathering = std::make_shared<Gathering>(Gathering{links_.size(), {}, std::move(done)});
  for (size_t i = 0; i < links_.size(); ++i) {
    const auto index = static_cast<WorkerIndex>(i);
    Send(index, body_for(index), [gathering](worker::ControlReply reply) {
      worker::ControlReply& total = gathering->total;
      if (total.error == 0) total.error = reply.error;
      total.events_reported += reply.events_reported;
      total.qps.insert(total.qps.end(), std::make_move_iterator(reply.qps.begin()),
                       std::make_move_iterator(reply.qps.end()));
      total.channels.insert(total.channels.end(), reply.channels.begin(), reply.channels.end());
      total.peers.insert(total.peers.end(), reply.peers.begin(), reply.peers.end());
      total.srqs.insert(total.srqs.end(), reply.srqs.begin(), reply.srqs.end());
      total.revoked.insert(total.revoked.end(), reply.revoked.begin(), reply.revoked.end());
      if (--gathering->missing == 0) gathering->done(std::move(total));
    });
  }
}

void WorkerRequests::Take(WorkerIndex worker, worker::WorkerMessage& message) {
  if (auto* reply = std::get_if<worker::ControlReply>(&message.body)) {
    auto node = continuations_.extract(message.cookie);
    if (node.empty()) return;
    if (--links_[worker].owed != 0) links_[worker].heard = ControlLoop::Now();
    node.mapped()(std::move(*reply));
  } else if (const auto* mad = std::get_if<worker::MadReceived>(&message.body)) {
    if (on_mad) on_mad(worker, *mad);
  } else if (const auto* event = std::get_if<worker::AsyncEventRaised>(&message.body)) {
    if (on_async_event) on_async_event(*event);
  } else if (const auto* stopped = std::get_if<worker::SessionStopped>(&message.body)) {
    if (on_session_stopped) on_session_stopped(*stopped);
  } else if (const auto* reached = std::get_if<worker::RateReached>(&message.body)) {
    if (on_rate_reached) on_rate_reached(*reached);
  } else if (const auto* refused = std::get_if<worker::ChannelRefused>(&message.body)) {
    if (on_channel_refused) on_channel_refused(*refused);
  } else if (const auto* changed = std::get_if<worker::PeerChanged>(&message.body)) {
    if (on_peer_changed) on_peer_changed(*changed);
  }
}

Duration WorkerRequests::silent(WorkerIndex worker, TimePoint now) const {
  const Link& link = links_[worker];
  return link.owed == 0 ? Duration{} : now - link.heard;
}

bool WorkerRequests::idle() const {
  return continuations_.empty() && std::all_of(links_.begin(), links_.end(), [](const Link& link) {
           return link.waiting.empty() && link.worker->to_worker.empty() &&
                  link.worker->to_control.empty();
         });
}

bool WorkerRequests::HasWork() const {
  return std::any_of(links_.begin(), links_.end(),
                     [](const Link& link) { return !link.worker->to_control.empty(); });
}

void WorkerRequests::Work() {
  worker::WorkerMessage message;
  for (size_t i = 0; i < links_.size(); ++i) {
    // At most one ring full per worker, so that a busy worker does not hold up the control thread.
    size_t budget = links_[i].worker->to_control.capacity();
    while (budget != 0 && links_[i].worker->to_control.Pop(message)) {
      Take(static_cast<WorkerIndex>(i), message);
      --budget;
    }
  }
}

void WorkerRequests::SetAwake(bool awake) {
  for (Link& link : links_) link.worker->control_awake.store(awake, std::memory_order_relaxed);
  // Orders the store before the next look at the ring.
  if (!awake) std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool WorkerRequests::Flush() {
  if (held_) return false;
  bool full = false;
  for (Link& link : links_) {
    while (!link.waiting.empty() && Push(link, link.waiting.front())) {
      link.waiting.pop_front();
      link.wake = true;
    }
    full = full || !link.waiting.empty();
    if (!link.wake) continue;
    link.wake = false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (link.worker->worker_awake.load(std::memory_order_relaxed)) continue;
    const uint64_t one = 1;
    (void)!::write(link.worker->worker_wake_fd, &one, sizeof one);
  }
  return full;
}

}  // namespace rocegw::session
