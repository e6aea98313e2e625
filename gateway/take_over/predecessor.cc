// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/predecessor.h"

namespace rocegw::take_over {

Predecessor::Step Predecessor::Advance(State from, State to, PredecessorAction action) {
  if (state_ == State::kKilling) return {};
  if (state_ != from) return OnMalformed();
  state_ = to;
  return {{action}, std::nullopt};
}

Predecessor::Step Predecessor::Kill() {
  state_ = State::kKilling;
  return {{PredecessorAction::kKill}, std::nullopt};
}

Predecessor::Step Predecessor::Abandon(Refusal refusal, bool tell) {
  Step step;
  if (tell) step.actions.push_back(PredecessorAction::kRefuse);
  step.actions.push_back(PredecessorAction::kClose);
  if (state_ >= State::kQuieting) step.actions.push_back(PredecessorAction::kResume);
  step.refusal = refusal;
  state_ = State::kServing;
  return step;
}

Predecessor::Step Predecessor::OnConnected() {
  state_ = State::kGreeting;
  return {};
}

Predecessor::Step Predecessor::OnHello(std::optional<Refusal> refusal) {
  if (state_ == State::kGreeting && refusal) return Abandon(*refusal, true);
  return Advance(State::kGreeting, State::kPreparing, PredecessorAction::kOffer);
}

Predecessor::Step Predecessor::OnPrepared() {
  return Advance(State::kPreparing, State::kQuieting, PredecessorAction::kQuieten);
}

Predecessor::Step Predecessor::OnQuiet() {
  // The take-over may have been abandoned meanwhile.
  if (state_ != State::kQuieting) return {};
  return Advance(State::kQuieting, State::kSwitching, PredecessorAction::kSendState);
}

Predecessor::Step Predecessor::OnNotQuiet(Refusal refusal) {
  if (state_ != State::kQuieting) return {};
  return Abandon(refusal, true);
}

Predecessor::Step Predecessor::OnNotWritten(Refusal refusal) {
  if (state_ != State::kPreparing && state_ != State::kSwitching) return {};
  return Abandon(refusal, true);
}

Predecessor::Step Predecessor::OnReady() {
  return Advance(State::kSwitching, State::kCommitted, PredecessorAction::kCommit);
}

Predecessor::Step Predecessor::OnServing() {
  return Advance(State::kCommitted, State::kLeft, PredecessorAction::kLeave);
}

Predecessor::Step Predecessor::OnRefused(Refusal refusal) {
  // After COMMIT only the end of the process counts: until then it may be acting.
  if (!is_gateway() || state_ == State::kServing) return {};
  return Abandon(refusal, false);
}

Predecessor::Step Predecessor::OnClosed() {
  if (state_ == State::kServing || state_ == State::kLeft) return {};
  return Abandon(Refusal::kDied, false);
}

Predecessor::Step Predecessor::OnDeadline() {
  if (state_ == State::kCommitted || state_ == State::kKilling) return Kill();
  if (state_ == State::kServing || state_ == State::kLeft) return {};
  return Abandon(Refusal::kDeadline, true);
}

Predecessor::Step Predecessor::OnMalformed() {
  if (state_ == State::kCommitted || state_ == State::kKilling) return Kill();
  if (state_ == State::kServing || state_ == State::kLeft) return {};
  return Abandon(Refusal::kProtocol, true);
}

}  // namespace rocegw::take_over
