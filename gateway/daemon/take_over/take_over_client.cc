// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/take_over_client.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/take_over/descriptors.h"

namespace rocegw::daemon {
namespace {

using take_over::Connection;
using take_over::Refusal;
using take_over::Refuse;
using take_over::SuccessorAction;
using SuccessorState = take_over::Successor::State;

// Longer than the predecessor's limits, so that it ends a take-over that is too slow.
constexpr Duration kPhase = Seconds(15);
constexpr size_t kMostState = 1 << 30;

}  // namespace

TakeOverClient::Outcome TakeOverClient::Ask(const std::string& path, const std::string& version,
                                            std::vector<std::string> shape) {
  auto socket = take_over::ConnectToPredecessor(path);
  if (!socket.ok()) {
    const int error = socket.status().error();
    if (error == ENOENT || error == ECONNREFUSED) return Outcome::kNobody;
    refuse_ = {Refusal::kStart, socket.status().text()};
    return Outcome::kRefused;
  }
  const auto peer = take_over::PeerOf(socket->get());
  if (!peer.ok() || !take_over::IsTrusted(peer.value())) {
    refuse_ = {Refusal::kUser, "the running gateway belongs to another user"};
    return Outcome::kRefused;
  }
  if (peer.value().pid > 0)
    process_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, peer.value().pid, 0)));
  connection_ = Connection(std::move(*socket));
  own_version_ = version;
  shape_ = std::move(shape);
  return Do(rules_.Begin()) ? outcome_ : Run();
}

TakeOverClient::Outcome TakeOverClient::AwaitState() {
  return Do(rules_.OnPrepared()) ? outcome_ : Run();
}

TakeOverClient::Outcome TakeOverClient::AwaitCommit() {
  return Do(rules_.OnBuilt()) ? outcome_ : Run();
}

void TakeOverClient::SendServing(Duration blackout) {
  (void)rules_.OnActing();
  connection_.Send(take_over::Serving{blackout});
}

void TakeOverClient::SendFailed(const std::string& text) {
  refuse_ = {Refusal::kStart, text};
  (void)Do(rules_.OnFailed(Refusal::kStart));
}

void TakeOverClient::AwaitEndOfPredecessor(Duration wait) const {
  if (!process_.valid()) return;
  pollfd ended = {process_.get(), POLLIN, 0};
  (void)::poll(&ended, 1, static_cast<int>(wait.ns / 1'000'000));
}

TakeOverClient::Outcome TakeOverClient::Run() {
  while (!Do(Next())) {
  }
  return outcome_;
}

TakeOverClient::Step TakeOverClient::Next() {
  const TimePoint deadline = MonotonicNow() + kPhase;
  for (;;) {
    Connection::Received received = connection_.Receive();
    if (received.outcome != Connection::Outcome::kNothing) return Handle(received);
    const Duration left = deadline - MonotonicNow();
    if (left.ns <= 0) return rules_.OnDeadline();
    pollfd readable = {connection_.fd(), POLLIN, 0};
    (void)::poll(&readable, 1, static_cast<int>(left.ns / 1'000'000) + 1);
  }
}

TakeOverClient::Step TakeOverClient::Handle(Connection::Received& received) {
  if (received.outcome == Connection::Outcome::kClosed) return rules_.OnClosed();
  if (received.outcome == Connection::Outcome::kMalformed) return rules_.OnMalformed();
  const take_over::Message& message = *received.message;
  if (const auto* refuse = std::get_if<Refuse>(&message)) {
    refuse_ = *refuse;
    return rules_.OnRefused(refuse->refusal);
  }
  if (const auto* offer = std::get_if<take_over::Offer>(&message)) {
    version_ = offer->version;
    expected_ = offer->descriptors;
    return rules_.OnOffer();
  }
  if (const auto* labels = std::get_if<take_over::Descriptors>(&message))
    return TakeDescriptors(*labels, received.fds);
  if (std::holds_alternative<take_over::State>(message)) return TakeState();
  if (std::holds_alternative<take_over::Commit>(message)) return rules_.OnCommit();
  return rules_.OnMalformed();
}

TakeOverClient::Step TakeOverClient::TakeState() {
  const bool prepares = rules_.state() == SuccessorState::kReceiving;
  if (prepares && descriptors_ != expected_) return rules_.OnMalformed();
  auto file = take_over::StateFile::Map(state_file_, kMostState);
  if (!file.ok()) {
    refuse_ = {Refusal::kDescriptors, file.status().text()};
    return rules_.OnFailed(Refusal::kDescriptors);
  }
  state_file_.Reset();
  (prepares ? foundation_ : state_) = std::move(*file);
  if (!prepares) state_began_ = MonotonicNow();
  return rules_.OnState();
}

TakeOverClient::Step TakeOverClient::TakeDescriptors(const take_over::Descriptors& labels,
                                                     std::vector<UniqueFd>& fds) {
  for (size_t i = 0; i < fds.size(); ++i) {
    const auto& label = labels.labels[i];
    if (label.kind == take_over::kStateFile) {
      state_file_ = std::move(fds[i]);
      continue;
    }
    if (Status judged = take_over::JudgeFd(label.kind, label.name, fds[i].get()); !judged.ok()) {
      refuse_ = {Refusal::kDescriptors, judged.text()};
      return rules_.OnFailed(Refusal::kDescriptors);
    }
    fds_.Add(label.kind, label.name, std::move(fds[i]));
    ++descriptors_;
  }
  return {};
}

bool TakeOverClient::Do(const Step& step) {
  if (step.refusal && refuse_.refusal != *step.refusal) refuse_ = {*step.refusal, ""};
  for (const SuccessorAction action : step.actions) {
    switch (action) {
      case SuccessorAction::kSendHello:
        connection_.Send(
            take_over::Hello{take_over::kProtocol, own_version_, {}, std::move(shape_)});
        break;
      case SuccessorAction::kSendPrepared:
        connection_.Send(take_over::Prepared());
        break;
      case SuccessorAction::kSendReady:
        connection_.Send(take_over::Ready());
        break;
      case SuccessorAction::kSendServing:
        break;  // SendServing
      case SuccessorAction::kSendRefuse:
        connection_.Send(refuse_);
        break;
      case SuccessorAction::kPrepare:
      case SuccessorAction::kBuild:
      case SuccessorAction::kAct:
        outcome_ = Outcome::kGoOn;
        return true;
      case SuccessorAction::kGiveUp:
        outcome_ = Outcome::kRefused;
        return true;
      case SuccessorAction::kStartOrdinary:
        outcome_ = Outcome::kPredecessorEnded;
        return true;
    }
  }
  return false;
}

}  // namespace rocegw::daemon
