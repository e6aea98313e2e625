// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/quiet.h"

#include <cerrno>
#include <string>
#include <utility>

namespace rocegw::daemon {
namespace {

using take_over::Refusal;
using take_over::Refuse;

// Longest wait for slow requests, while all other programs are served.
constexpr Duration kSlowRequestsWithin = Seconds(1);
// Longest wait for requests in progress and for programs that attach. Attaches and requests wait as
// long. On a busy host a program may need half a second to attach.
constexpr Duration kSettledWithin = Milliseconds(500);
// Longest wait for the end of sessions that did not settle.
constexpr Duration kEndedWithin = Milliseconds(250);
constexpr Duration kWorkersRestWithin = Milliseconds(500);
constexpr Duration kLookAgain = Milliseconds(1);
constexpr Duration kRestAgain = Microseconds(50);

}  // namespace

void Quiet::Accept(bool accepts) {
  parts_.data_path.sessions()->attach().SetAccepting(accepts);
  parts_.data_path.sessions()->attach().SetReading(accepts);
  parts_.metrics.SetAccepting(accepts);
  parts_.grpc.SetAccepting(accepts);
}

void Quiet::Begin(Done done) {
  active_ = true;
  ++number_;
  done_ = std::move(done);
  began_ = ControlLoop::Now();
  ended_unsettled_ = false;
  parts_.data_path.sessions()->attach().BeginSettling();
  AwaitSlowRequests();
}

void Quiet::AwaitSlowRequests() {
  timer_ = 0;
  session::AttachServer& attach = parts_.data_path.sessions()->attach();
  if (attach.settling()) {
    const Duration waited = ControlLoop::Now() - began_;
    // Requests that wait for their pool's turn are not slow by themselves.
    if (waited > kSlowRequestsWithin / 2)
      parts_.data_path.sessions()->services().receivers.SetPaced(false);
    if (waited <= kSlowRequestsWithin) {
      timer_ = parts_.loop.At(ControlLoop::Now() + kLookAgain, [this] { AwaitSlowRequests(); });
      return;
    }
    const std::string prevents = attach.EndUnsettled(session::AttachServer::Unsettling::kAtBegin);
    if (!prevents.empty()) return Answer(Refuse{Refusal::kSessions, prevents});
  }
  since_ = ControlLoop::Now();
  parts_.steps.Begin(since_);
  Accept(false);
  // The agent may take seconds to decide, and programs must not wait for it.
  attach.gate().RefuseAll(EAGAIN, "the gateway is being replaced");
  Look();
}

std::optional<Refuse> Quiet::Busy() const {
  session::SessionServer& sessions = *parts_.data_path.sessions();
  if (const std::string reason = sessions.attach().Unsettled(); !reason.empty())
    return Refuse{Refusal::kSessions, reason};
  if (const char* const reason = sessions.cm().Unsettled())
    return Refuse{Refusal::kSessions, reason};
  if (!sessions.services().workers.idle()) return Refuse{Refusal::kWorkers, "messages wait"};
  return std::nullopt;
}

void Quiet::Look() {
  timer_ = 0;
  auto busy = Busy();
  if (!busy) {
    const std::string never = parts_.data_path.sessions()->attach().NotHandedOver();
    return never.empty() ? ParkWorkers() : Answer(Refuse{Refusal::kSessions, never});
  }
  const Duration waited = ControlLoop::Now() - since_;
  if (waited > kSettledWithin && !std::exchange(ended_unsettled_, true)) {
    session::AttachServer& attach = parts_.data_path.sessions()->attach();
    const std::string prevents = attach.EndUnsettled(session::AttachServer::Unsettling::kAll);
    if (!prevents.empty()) return Answer(Refuse{Refusal::kSessions, prevents});
  }
  if (waited > kSettledWithin + kEndedWithin) return Answer(std::move(busy));
  timer_ = parts_.loop.At(ControlLoop::Now() + kLookAgain, [this] { Look(); });
}

void Quiet::ParkWorkers() {
  session::SessionServer& sessions = *parts_.data_path.sessions();
  sessions.captures().StopAll();
  // The end of a capture is a message to the workers.
  if (!sessions.services().workers.idle()) {
    timer_ = parts_.loop.At(ControlLoop::Now() + kRestAgain, [this] { Look(); });
    return;
  }
  parts_.steps.End("requests settled", ControlLoop::Now());
  sessions.attach().SetWatching(false);
  sessions.SetConnectionsResting(true);
  workers_parked_ = true;
  parked_at_ = ControlLoop::Now();
  parts_.data_path.ParkWorkers();
  AwaitWorkers();
}

void Quiet::AwaitWorkers() {
  timer_ = 0;
  if (parts_.data_path.RestWorkers()) {
    const std::string unsettled = parts_.data_path.sessions()->attach().Unsettled();
    if (unsettled.empty()) {
      parts_.steps.End("workers rest", ControlLoop::Now());
      return Answer(std::nullopt);
    }
    // A message that arrived just before the workers were parked is settled first.
    UnparkWorkers();
    return Look();
  }
  if (ControlLoop::Now() - parked_at_ > kWorkersRestWithin)
    return Answer(Refuse{Refusal::kWorkers, ""});
  timer_ = parts_.loop.At(ControlLoop::Now() + kRestAgain, [this] { AwaitWorkers(); });
}

void Quiet::Answer(std::optional<Refuse> refuse) {
  parts_.loop.Cancel(std::exchange(timer_, 0));
  std::exchange(done_, nullptr)(std::move(refuse));
}

void Quiet::End() {
  if (!active_) return;
  active_ = false;
  ++number_;
  done_ = nullptr;
  parts_.loop.Cancel(std::exchange(timer_, 0));
  UnparkWorkers();
  parts_.data_path.sessions()->attach().EndSettling();
  Accept(true);
}

void Quiet::UnparkWorkers() {
  if (!std::exchange(workers_parked_, false)) return;
  session::SessionServer& sessions = *parts_.data_path.sessions();
  parts_.data_path.UnparkWorkers();
  sessions.SetConnectionsResting(false);
  sessions.attach().SetWatching(true);
}

}  // namespace rocegw::daemon
