// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/quiet.h"

#include <string>
#include <utility>

namespace rocegw::daemon {
namespace {

using take_over::Refusal;
using take_over::Refuse;

// Longest wait for programs that are attached when the rest begins. Attaches wait as long.
constexpr Duration kProgramsEndWithin = Milliseconds(250);
constexpr Duration kWorkersRestWithin = Milliseconds(500);
constexpr Duration kLookAgain = Milliseconds(1);

std::string ProgramsText(size_t count) {
  return count == 1 ? "1 program is attached" : std::to_string(count) + " programs are attached";
}

}  // namespace

void Quiet::Accept(bool accepts) {
  parts_.data_path.sessions()->attach().SetAccepting(accepts);
  parts_.metrics.SetAccepting(accepts);
  parts_.grpc.SetAccepting(accepts);
}

void Quiet::Begin(Done done) {
  active_ = true;
  ++number_;
  done_ = std::move(done);
  since_ = ControlLoop::Now();
  Accept(false);
  Look();
}

std::optional<Refuse> Quiet::Busy() const {
  session::SessionServer& sessions = *parts_.data_path.sessions();
  const size_t attached = sessions.session_count() + sessions.blocked_count();
  if (attached != 0) return Refuse{Refusal::kSessions, ProgramsText(attached)};
  if (sessions.gate().size() != 0)
    return Refuse{Refusal::kSessions, "an attach waits for the agent's verdict"};
  return std::nullopt;
}

void Quiet::Look() {
  timer_ = 0;
  auto busy = Busy();
  if (!busy) return StopWorkers();
  if (ControlLoop::Now() - since_ > kProgramsEndWithin) return Answer(std::move(busy));
  timer_ = parts_.loop.At(ControlLoop::Now() + kLookAgain, [this] { Look(); });
}

void Quiet::StopWorkers() {
  parts_.data_path.sessions()->captures().StopAll();
  workers_still_ = true;
  parts_.data_path.Quieten([this, number = number_] {
    if (number == number_ && done_) Answer(std::nullopt);
  });
  timer_ = parts_.loop.At(ControlLoop::Now() + kWorkersRestWithin, [this] {
    timer_ = 0;
    if (done_) Answer(Refuse{Refusal::kWorkers, ""});
  });
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
  if (std::exchange(workers_still_, false)) parts_.data_path.Resume();
  Accept(true);
}

}  // namespace rocegw::daemon
