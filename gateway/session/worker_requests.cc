// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/worker_requests.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

namespace rocegw::session {

WorkerRequests::WorkerRequests(const std::vector<worker::WorkerLink*>& links) {
  lanes_.reserve(links.size());
  for (worker::WorkerLink* link : links)
    lanes_.push_back({.link = link, .waiting = {}, .heard = {}});
}

bool WorkerRequests::Push(Lane& lane, const worker::ControlMessage& message) {
  return lane.link->to_worker.Push(worker::ControlMessage(message));
}

void WorkerRequests::Queue(WorkerIndex worker, const worker::ControlMessage& message) {
  Lane& lane = lanes_[worker];
  if (!lane.waiting.empty() || !Push(lane, message)) {
    lane.waiting.push_back(message);
  }
  lane.wake = true;
}

void WorkerRequests::Send(WorkerIndex worker, const Body& body, Continuation done) {
  const uint64_t cookie = next_cookie_++;
  continuations_.emplace(cookie, std::move(done));
  if (lanes_[worker].owed++ == 0) lanes_[worker].heard = ControlLoop::Now();
  Queue(worker, {cookie, body});
}

bool WorkerRequests::TryTell(WorkerIndex worker, const Body& body, Haste haste) {
  Lane& lane = lanes_[worker];
  if (!lane.waiting.empty() || !Push(lane, {0, body})) return false;
  lane.wake = lane.wake || haste == Haste::kNow;
  return true;
}

void WorkerRequests::Tell(WorkerIndex worker, const Body& body) { Queue(worker, {0, body}); }

void WorkerRequests::TellAll(const Body& body) {
  for (size_t i = 0; i < lanes_.size(); ++i) Tell(static_cast<WorkerIndex>(i), body);
}

void WorkerRequests::Broadcast(const BodyFor& body_for, Continuation done) {
  struct Gathering {
    size_t missing;
    worker::ControlReply total;
    Continuation done;
  };
  auto gathering = std::make_shared<Gathering>(Gathering{lanes_.size(), {}, std::move(done)});
  for (size_t i = 0; i < lanes_.size(); ++i) {
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
    if (--lanes_[worker].owed != 0) lanes_[worker].heard = ControlLoop::Now();
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
  const Lane& lane = lanes_[worker];
  return lane.owed == 0 ? Duration{} : now - lane.heard;
}

bool WorkerRequests::HasWork() const {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return !lane.link->to_control.empty(); });
}

void WorkerRequests::Work() {
  worker::WorkerMessage message;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    // At most one ring full per worker, so that a busy worker does not hold up the control thread.
    size_t budget = lanes_[i].link->to_control.capacity();
    while (budget != 0 && lanes_[i].link->to_control.Pop(message)) {
      Take(static_cast<WorkerIndex>(i), message);
      --budget;
    }
  }
}

void WorkerRequests::SetAwake(bool awake) {
  for (Lane& lane : lanes_) lane.link->control_awake.store(awake, std::memory_order_relaxed);
  // Orders the store before the next look at the ring.
  if (!awake) std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool WorkerRequests::Flush() {
  bool full = false;
  for (Lane& lane : lanes_) {
    while (!lane.waiting.empty() && Push(lane, lane.waiting.front())) {
      lane.waiting.pop_front();
      lane.wake = true;
    }
    full = full || !lane.waiting.empty();
    if (!lane.wake) continue;
    lane.wake = false;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (lane.link->worker_awake.load(std::memory_order_relaxed)) continue;
    const uint64_t one = 1;
    (void)!::write(lane.link->worker_wake_fd, &one, sizeof one);
  }
  return full;
}

}  // namespace rocegw::session
