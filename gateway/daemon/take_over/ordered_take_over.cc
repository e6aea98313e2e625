// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/ordered_take_over.h"

#include <sys/epoll.h>

#include <cerrno>

#include "gateway/daemon/take_over/successor_process.h"

namespace rocegw::daemon {
namespace {

using service::TakeOverOutcome;
using take_over::Refusal;
using take_over::Refuse;

// The end of the process and of its connection are reported in any order.
constexpr Duration kRefusalFollowsWithin = Milliseconds(50);
// A killed process that hangs in the kernel is not waited for any longer.
constexpr Duration kKilledWithin = Seconds(5);

TakeOverOutcome OutcomeOf(const Refuse& refuse) {
  TakeOverOutcome outcome;
  outcome.refusal = take_over::LabelOf(refuse.refusal);
  outcome.text = take_over::TextOf(refuse.refusal);
  if (!refuse.text.empty()) outcome.text += ": " + refuse.text;
  return outcome;
}

}  // namespace

void OrderedTakeOver::Start(Done done) {
  if (done_) return done(OutcomeOf({Refusal::kBusy, {}}));
  StatusOr<UniqueFd> spawned = Status(ENOSYS, "this process cannot start another one");
  if (spawn_) spawned = spawn_();
  if (!spawned.ok()) return done(OutcomeOf({Refusal::kStart, spawned.status().text()}));
  const auto watch = loop_.Watch(spawned->get(), EPOLLIN, [this](uint32_t) { OnProcessEnded(); });
  if (watch == 0) {
    KillAndReap(*spawned);
    return done(OutcomeOf({Refusal::kStart, "the end of the new process cannot be watched"}));
  }
  process_ = std::move(*spawned);
  watch_ = watch;
  done_ = std::move(done);
  refuse_.reset();
  deadline_ = loop_.At(ControlLoop::Now() + limit_, [this] { OnDeadline(); });
}

void OrderedTakeOver::OnDeadline() {
  const Refuse refuse = refuse_.value_or(
      Refuse{Refusal::kDeadline, "the new process neither took over nor ended within " +
                                     std::to_string(limit_.ns / 1'000'000'000) + " s"});
  refuse_ = refuse;
  Kill(process_);
  deadline_ = loop_.At(ControlLoop::Now() + kKilledWithin, [this, refuse] {
    deadline_ = 0;
    Finish(OutcomeOf(refuse));
  });
}

void OrderedTakeOver::OnRefused(const Refuse& refuse) {
  if (done_) refuse_ = refuse;
}

void OrderedTakeOver::OnReplaced(Duration blackout, const session::Totals& handed_over) {
  if (!done_) return;
  TakeOverOutcome outcome;
  outcome.blackout = blackout;
  outcome.handed_over = handed_over;
  Finish(outcome);
}

void OrderedTakeOver::OnProcessEnded() {
  end_ = Reap(process_);
  loop_.Unwatch(std::exchange(watch_, 0));
  ended_ = loop_.At(ControlLoop::Now() + kRefusalFollowsWithin, [this] {
    ended_ = 0;
    // A process that never asked says why in its log only.
    Finish(OutcomeOf(refuse_.value_or(
        Refuse{Refusal::kStart, "the new process " + end_ + " before it asked; see its log"})));
  });
}

void OrderedTakeOver::Stop() {
  if (done_) Finish(Status(ESHUTDOWN, "the gateway is stopping"));
}

void OrderedTakeOver::Finish(const StatusOr<TakeOverOutcome>& outcome) {
  loop_.Unwatch(std::exchange(watch_, 0));
  loop_.Cancel(std::exchange(ended_, 0));
  loop_.Cancel(std::exchange(deadline_, 0));
  process_.Reset();
  std::exchange(done_, nullptr)(outcome);
}

}  // namespace rocegw::daemon
