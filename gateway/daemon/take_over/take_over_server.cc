// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/take_over/take_over_server.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace rocegw::daemon {
namespace {

using take_over::Connection;
using take_over::Predecessor;
using take_over::PredecessorAction;
using take_over::Refusal;
using take_over::Refuse;
using PredecessorState = take_over::Predecessor::State;

// A session that has not changed for this time is handed over while this gateway serves.
constexpr Duration kUnchangedFor = Milliseconds(50);

// Limits of the phases. Until COMMIT programs wait no longer than the limits of quieting, of which
// the wait for slow requests stops no program, and of switching together.
Duration LimitOf(PredecessorState state) {
  switch (state) {
    case PredecessorState::kGreeting:
      return Seconds(2);
    case PredecessorState::kPreparing:
      return Seconds(10);
    case PredecessorState::kQuieting:
      return Seconds(3);
    case PredecessorState::kSwitching:
      return Seconds(2);
    default:
      return Seconds(5);
  }
}

}  // namespace

Status TakeOverServer::Start(const std::string& path, InheritedFds* inherited) {
  path_ = path;
  if (inherited != nullptr) listener_ = inherited->Take(FdKind::kTakeOverListener, path);
  if (!listener_.valid()) {
    auto listener = take_over::ListenForSuccessor(path);
    if (!listener.ok()) return listener.status();
    listener_ = std::move(*listener);
  }
  listener_watch_ = loop_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { OnConnection(); });
  return OkStatus();
}

void TakeOverServer::Stop() {
  if (!listener_.valid()) return;
  if (connection_.valid()) {
    connection_.Send(Refuse{Refusal::kStopping, ""});
    CloseConnection();
  }
  loop_.Unwatch(std::exchange(listener_watch_, 0));
  ::unlink(path_.c_str());
  listener_.Reset();
}

void TakeOverServer::Offer(OfferedFds& fds) const {
  fds.push_back({FdKind::kTakeOverListener, path_, listener_.get()});
}

void TakeOverServer::RefuseOther(UniqueFd socket) {
  Connection other(std::move(socket));
  other.Send(Refuse{Refusal::kBusy, ""});
  host_.OnRefused(Refusal::kBusy, "");
}

void TakeOverServer::OnConnection() {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return;
  const auto peer = take_over::PeerOf(socket.get());
  if (!peer.ok() || !take_over::IsTrusted(peer.value())) {
    Connection stranger(std::move(socket));
    stranger.Send(Refuse{Refusal::kUser, ""});
    return host_.OnRefused(Refusal::kUser, "");
  }
  if (connection_.valid()) return RefuseOther(std::move(socket));
  successor_ = peer.value().pid;
  // 0: a process of another PID namespace.
  if (successor_ > 0) process_.Reset(static_cast<int>(::syscall(SYS_pidfd_open, successor_, 0)));
  spdlog::info("take-over: process {} asks to replace this gateway", successor_);
  connection_ = Connection(std::move(socket));
  refuse_ = {};
  Do(rules_.OnConnected());
  connection_watch_ = loop_.Watch(connection_.fd(), EPOLLIN, [this](uint32_t) { OnMessages(); });
}

void TakeOverServer::OnMessages() {
  connection_.Flush();
  while (connection_.valid()) {
    Connection::Received received = connection_.Receive();
    if (received.outcome == Connection::Outcome::kNothing) break;
    Do(Handle(received));
    // The process of a connection that is closed and still counts (kKilling) ends by itself.
    if (received.outcome == Connection::Outcome::kClosed) break;
  }
  Watch();
}

TakeOverServer::Step TakeOverServer::Handle(Connection::Received& received) {
  if (received.outcome == Connection::Outcome::kClosed) return rules_.OnClosed();
  if (received.outcome == Connection::Outcome::kMalformed) return rules_.OnMalformed();
  const take_over::Message& message = *received.message;
  if (const auto* hello = std::get_if<take_over::Hello>(&message)) return OnHello(*hello);
  if (const auto* refuse = std::get_if<Refuse>(&message)) {
    refuse_ = *refuse;
    return rules_.OnRefused(refuse->refusal);
  }
  if (std::holds_alternative<take_over::Prepared>(message)) return rules_.OnPrepared();
  if (std::holds_alternative<take_over::Ready>(message)) {
    steps_.End("built by the new process", ControlLoop::Now());
    return rules_.OnReady();
  }
  if (const auto* serving = std::get_if<take_over::Serving>(&message)) {
    blackout_ = serving->blackout;
    steps_.End("begun by the new process", ControlLoop::Now());
    return rules_.OnServing();
  }
  return rules_.OnMalformed();
}

TakeOverServer::Step TakeOverServer::OnHello(const take_over::Hello& hello) {
  std::optional<Refuse> refuse;
  if (hello.protocol != take_over::kProtocol) {
    refuse = Refuse{Refusal::kProtocol, "it speaks version " + std::to_string(hello.protocol) +
                                            ", this gateway version " +
                                            std::to_string(take_over::kProtocol)};
  } else if (const char* const kind = hello.versions.Unwritable()) {
    refuse = Refuse{Refusal::kStateVersion, std::string("state of kind ") + kind};
  } else {
    refuse = host_.Judge(hello);
  }
  versions_ = hello.versions;
  if (!refuse) return rules_.OnHello(std::nullopt);
  refuse_ = *refuse;
  return rules_.OnHello(refuse->refusal);
}

void TakeOverServer::Do(const Step& step) {
  if (step.refusal && (refuse_.refusal != *step.refusal)) refuse_ = {*step.refusal, ""};
  for (const PredecessorAction action : step.actions) Do(action);
  if (step.refusal) host_.OnRefused(refuse_.refusal, refuse_.text);
  SetDeadline();
}

void TakeOverServer::Do(PredecessorAction action) {
  switch (action) {
    case PredecessorAction::kOffer:
      return PrepareOffer();
    case PredecessorAction::kRefuse:
      return connection_.Send(refuse_);
    case PredecessorAction::kClose:
      return CloseConnection();
    case PredecessorAction::kQuieten:
      return host_.Quieten([this](std::optional<Refuse> refuse) {
        if (!refuse) return Do(rules_.OnQuiet());
        refuse_ = *refuse;
        Do(rules_.OnNotQuiet(refuse->refusal));
      });
    case PredecessorAction::kResume:
      return host_.Resume();
    case PredecessorAction::kSendState:
      return SendState();
    case PredecessorAction::kCommit:
      return connection_.Send(take_over::Commit());
    case PredecessorAction::kKill:
      return KillSuccessor();
    case PredecessorAction::kLeave:
      return host_.Leave(successor_, blackout_);
  }
}

void TakeOverServer::PrepareOffer() {
  host_.LookAtSessions(versions_);
  loop_.Cancel(offer_);
  offer_ = loop_.At(ControlLoop::Now() + kUnchangedFor, [this] {
    offer_ = 0;
    SendOffer();
  });
}

void TakeOverServer::SendOffer() {
  sent_.clear();
  OfferedFds fds = host_.OfferFds();
  const OfferedFds of_sessions = host_.OfferSessionFds();
  fds.insert(fds.end(), of_sessions.begin(), of_sessions.end());
  fds = sent_.Missing(fds);
  connection_.Send(take_over::Offer{version_, static_cast<uint32_t>(fds.size())});
  SendDescriptors(fds);
  const auto foundation = host_.WriteFoundation(versions_);
  if (!foundation.ok()) return NotWritten(Refusal::kSessions, foundation.status().text());
  foundation_ = foundation.value();
  const auto sessions = host_.WriteUnchanged(versions_);
  if (!sessions.ok()) return NotWritten(Refusal::kSessions, sessions.status().text());
  std::vector<uint8_t> both = foundation_;
  both.insert(both.end(), sessions.value().begin(), sessions.value().end());
  if (Status sent = SendStateFile(both); !sent.ok())
    return NotWritten(Refusal::kSessions, sent.text());
}

void TakeOverServer::SendDescriptors(const OfferedFds& fds) {
  for (size_t first = 0; first < fds.size(); first += take_over::kMostFdsInMessage) {
    take_over::Descriptors batch;
    std::vector<int> numbers;
    const size_t last = std::min(fds.size(), first + take_over::kMostFdsInMessage);
    for (size_t i = first; i < last; ++i) {
      batch.labels.push_back({fds[i].kind, fds[i].name});
      numbers.push_back(fds[i].fd);
    }
    connection_.Send(batch, numbers);
  }
}

void TakeOverServer::NotWritten(Refusal refusal, const std::string& text) {
  refuse_ = {refusal, text};
  Do(rules_.OnNotWritten(refusal));
}

void TakeOverServer::SendState() {
  const auto foundation = host_.WriteFoundation(versions_);
  const bool same = foundation.ok() && foundation.value() == foundation_;
  if (!same || !sent_.Missing(host_.OfferFds()).empty())
    return NotWritten(Refusal::kChanged, "an address or a socket");
  const auto state = host_.WriteState(versions_);
  if (!state.ok()) {
    const bool changed = state.status().error() == EAGAIN;
    return NotWritten(changed ? Refusal::kChanged : Refusal::kSessions, state.status().text());
  }
  steps_.End("workers written", ControlLoop::Now());
  SendDescriptors(sent_.Missing(host_.OfferSessionFds()));
  if (Status sent = SendStateFile(state.value()); !sent.ok())
    return NotWritten(Refusal::kSessions, sent.text());
  steps_.End("sent", ControlLoop::Now());
}

Status TakeOverServer::SendStateFile(const std::vector<uint8_t>& state) {
  const auto file = take_over::MakeStateFile(state);
  if (!file.ok()) return file.status();
  SendDescriptors({{take_over::kStateFile, "state", file.value().get()}});
  connection_.Send(take_over::State());
  Watch();
  return OkStatus();
}

void TakeOverServer::CloseConnection() {
  loop_.Unwatch(std::exchange(connection_watch_, 0));
  loop_.Cancel(std::exchange(offer_, 0));
  connection_.Close();
  process_.Reset();
}

void TakeOverServer::Watch() {
  if (connection_watch_ == 0) return;
  loop_.Rearm(connection_watch_,
              connection_.has_backlog() ? uint32_t{EPOLLIN} | EPOLLOUT : uint32_t{EPOLLIN});
}

void TakeOverServer::SetDeadline() {
  const PredecessorState state = rules_.state();
  if (state == deadline_of_) return;
  deadline_of_ = state;
  loop_.Cancel(std::exchange(deadline_, 0));
  if (state == PredecessorState::kServing || state == PredecessorState::kLeft) return;
  deadline_ = loop_.At(ControlLoop::Now() + LimitOf(state), [this] {
    deadline_ = 0;
    // Messages that arrived in time count.
    OnMessages();
    if (deadline_ == 0) Do(rules_.OnDeadline());
  });
}

void TakeOverServer::KillSuccessor() const {
  spdlog::error("take-over: process {} neither serves nor ends; it is killed", successor_);
  if (process_.valid()) (void)::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
}

}  // namespace rocegw::daemon
