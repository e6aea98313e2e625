// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/successor.h"

#include <utility>

namespace rocegw::take_over {

Successor::Step Successor::Advance(State from, State to, std::vector<SuccessorAction> actions) {
  if (state_ != from) return OnMalformed();
  state_ = to;
  return {std::move(actions), std::nullopt};
}

Successor::Step Successor::Begin() { return {{SuccessorAction::kSendHello}, std::nullopt}; }

Successor::Step Successor::OnOffer() { return Advance(State::kAsking, State::kReceiving, {}); }

Successor::Step Successor::OnPrepared() {
  return Advance(State::kPreparing, State::kAwaitingState, {SuccessorAction::kSendPrepared});
}

Successor::Step Successor::OnState() {
  if (state_ == State::kReceiving)
    return Advance(State::kReceiving, State::kPreparing, {SuccessorAction::kPrepare});
  return Advance(State::kAwaitingState, State::kBuilding, {SuccessorAction::kBuild});
}

Successor::Step Successor::OnBuilt() {
  return Advance(State::kBuilding, State::kAwaitingCommit, {SuccessorAction::kSendReady});
}

Successor::Step Successor::OnCommit() {
  return Advance(State::kAwaitingCommit, State::kActing, {SuccessorAction::kAct});
}

Successor::Step Successor::OnActing() {
  return Advance(State::kActing, State::kServing, {SuccessorAction::kSendServing});
}

Successor::Step Successor::OnFailed(Refusal refusal) {
  if (state_ >= State::kServing) return {};
  state_ = State::kGaveUp;
  return {{SuccessorAction::kSendRefuse, SuccessorAction::kGiveUp}, refusal};
}

Successor::Step Successor::OnRefused(Refusal refusal) {
  if (state_ >= State::kActing) return {};
  state_ = State::kGaveUp;
  return {{SuccessorAction::kGiveUp}, refusal};
}

Successor::Step Successor::OnClosed() {
  if (state_ >= State::kActing) return {};
  state_ = State::kOrdinary;
  return {{SuccessorAction::kStartOrdinary}, std::nullopt};
}

Successor::Step Successor::OnDeadline() {
  if (state_ >= State::kActing) return {};
  return OnFailed(Refusal::kDeadline);
}

}  // namespace rocegw::take_over
