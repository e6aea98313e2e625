// SPDX-License-Identifier: Apache-2.0
// The control thread's talk with the workers: messages with a continuation for the answer. Order
// per worker is kept; what does not fit a worker's ring waits here. Continuations run from Work.
// Owner: the session server, control thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "gateway/session/control_loop.h"
#include "gateway/worker/control_message.h"
#include "gateway/worker/worker_link.h"

namespace rocegw::session {

class WorkerRequests final : public LoopSource {
 public:
  using Body = decltype(worker::ControlMessage::body);
  using Continuation = std::function<void(worker::ControlReply reply)>;
  using BodyFor = std::function<Body(WorkerIndex worker)>;

  // Links stay the caller's and outlive this object.
  explicit WorkerRequests(const std::vector<worker::WorkerLink*>& links);

  size_t worker_count() const { return lanes_.size(); }

  void Send(WorkerIndex worker, const Body& body, Continuation done);
  // The same without an answer, allocating nothing. False, and nothing is sent: it would have to
  // wait here.
  enum class Haste : uint8_t {
    kNow,
    kWhenAwake,  // it has nothing to do about it before a packet or a doorbell wakes it
  };
  [[nodiscard]] bool TryTell(WorkerIndex worker, const Body& body, Haste haste = Haste::kNow);
  // No answer wanted.
  void Tell(WorkerIndex worker, const Body& body);
  // Tells each worker the same.
  void TellAll(const Body& body);
  // One message to each worker; `done` gets one reply: the first error, if any, QPs of all, sums of
  // counts.
  void Broadcast(const BodyFor& body_for, Continuation done);

  bool HasWork() const override;
  // Takes what workers said: answers go to their continuations, the rest to the handlers below.
  void Work() override;
  void SetAwake(bool awake) override;
  // Hands over what waits and wakes workers that got something; to be called when a round of work
  // is over. True: a ring was full, call again soon.
  bool Flush();

  size_t unanswered() const { return continuations_.size(); }
  // How long a worker has owed an answer without giving any; zero: it owes none.
  Duration silent(WorkerIndex worker, TimePoint now) const;

  std::function<void(WorkerIndex, const worker::MadReceived&)> on_mad;
  std::function<void(const worker::AsyncEventRaised&)> on_async_event;
  std::function<void(const worker::SessionStopped&)> on_session_stopped;
  std::function<void(const worker::RateReached&)> on_rate_reached;
  std::function<void(const worker::ChannelRefused&)> on_channel_refused;
  std::function<void(const worker::PeerChanged&)> on_peer_changed;

 private:
  struct Lane {
    worker::WorkerLink* link;
    std::deque<worker::ControlMessage> waiting;
    bool wake = false;
    size_t owed = 0;  // answers
    TimePoint heard;  // of while it owes some: when it was asked first or answered last
  };

  static bool Push(Lane& lane, const worker::ControlMessage& message);
  void Queue(WorkerIndex worker, const worker::ControlMessage& message);
  void Take(WorkerIndex worker, worker::WorkerMessage& message);

  std::vector<Lane> lanes_;
  uint64_t next_cookie_ = 1;
  std::unordered_map<uint64_t, Continuation> continuations_;
};

}  // namespace rocegw::session
