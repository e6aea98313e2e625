// SPDX-License-Identifier: Apache-2.0
// Messages of the control thread to the workers, with continuations for the answers. Order per
// worker is kept; messages that do not fit a worker's ring wait here. Continuations run from Work.
// Owner: the session server, control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "gateway/loop/control_loop.h"
#include "gateway/worker/control/control_message.h"
#include "gateway/worker/control/worker_link.h"

namespace rocegw::session {

class WorkerRequests final : public LoopSource {
 public:
  using Body = decltype(worker::ControlMessage::body);
  using Continuation = std::function<void(worker::ControlReply reply)>;
  using BodyFor = std::function<Body(WorkerIndex worker)>;

  // Links stay the caller's and outlive this object.
  explicit WorkerRequests(const std::vector<worker::WorkerLink*>& links);

  size_t worker_count() const { return links_.size(); }

  void Send(WorkerIndex worker, const Body& body, Continuation done);
  // Sends a message without an answer and without allocating. Returns false, and sends nothing, if
  // the message would have to wait here.
  enum class Haste : uint8_t {
    kNow,
    kWhenAwake,  // the worker needs it only at its next packet or doorbell
  };
  [[nodiscard]] bool TryTell(WorkerIndex worker, const Body& body, Haste haste = Haste::kNow);
  // Sends a message without an answer.
  void Tell(WorkerIndex worker, const Body& body);
  // Sends the same message to each worker.
  void TellAll(const Body& body);
  // Sends a message to each worker; `done` gets one combined reply: the first error, if any, QPs of
  // all, sums of counts.
  void Broadcast(const BodyFor& body_for, Continuation done);

  bool HasWork() const override;
  // Handles the workers' messages: answers go to their continuations, the rest to the handlers
  // below.
  void Work() override;
  void SetAwake(bool awake) override;
  // Sends waiting messages and wakes the workers that got any; call at the end of a round. Returns
  // true if a ring was full: call again soon.
  bool Flush();

  // Keeps messages here until they are not held any more, for workers that rest.
  void SetHeld(bool held) { held_ = held; }
  // Returns true if nothing is on its way to a worker or back.
  bool idle() const;

  size_t unanswered() const { return continuations_.size(); }
  // Returns how long a worker has owed an answer without sending any; zero: it owes none.
  Duration silent(WorkerIndex worker, TimePoint now) const;

  std::function<void(WorkerIndex, const worker::MadReceived&)> on_mad;
  std::function<void(const worker::AsyncEventRaised&)> on_async_event;
  std::function<void(const worker::SessionStopped&)> on_session_stopped;
  std::function<void(const worker::RateReached&)> on_rate_reached;
  std::function<void(const worker::ChannelRefused&)> on_channel_refused;
  std::function<void(const worker::PeerChanged&)> on_peer_changed;

 private:
  struct Link {
    worker::WorkerLink* worker;
    std::deque<worker::ControlMessage> waiting;
    bool wake = false;
    size_t owed = 0;  // number of owed answers
    TimePoint heard;  // while it owes answers: time of the first request or the last answer
  };

  static bool Push(Link& link, const worker::ControlMessage& message);
  void Queue(WorkerIndex worker, const worker::ControlMessage& message);
  void Take(WorkerIndex worker, worker::WorkerMessage& message);

  std::vector<Link> links_;
  bool held_ = false;
  uint64_t next_cookie_ = 1;
  std::unordered_map<uint64_t, Continuation> continuations_;
};

}  // namespace rocegw::session
