// SPDX-License-Identifier: Apache-2.0
// Side of the running gateway in a take-over: listens for the process that replaces it, and
// performs the actions of take_over::Predecessor. One take-over at a time; each phase has a
// deadline. Control thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"
#include "gateway/take_over/connection.h"
#include "gateway/take_over/messages.h"
#include "gateway/take_over/predecessor.h"
#include "gateway/take_over/sent_descriptors.h"
#include "gateway/take_over/state_file.h"
#include "gateway/take_over/step_times.h"

namespace rocegw::daemon {

// Actions of the running gateway during a take-over.
class TakeOverHost {
 public:
  virtual ~TakeOverHost() = default;

  // Returns why this gateway cannot be replaced by that process; nothing: it can.
  virtual std::optional<take_over::Refuse> Judge(const take_over::Hello& hello) = 0;
  // Descriptors of the gateway itself.
  virtual OfferedFds OfferFds() = 0;
  // Descriptors of attached programs.
  virtual OfferedFds OfferSessionFds() = 0;
  // Stops acting; `done` with nothing, or with the reason why not.
  virtual void Quieten(std::function<void(std::optional<take_over::Refuse>)> done) = 0;
  virtual void Resume() = 0;
  // Return a state, in versions that the successor reads, or why it cannot be written.
  // Begins to watch which sessions do not change.
  virtual void LookAtSessions(const hand_over::StateVersions& reader) = 0;
  // State that does not change while this gateway can be replaced.
  virtual StatusOr<std::vector<uint8_t>> WriteFoundation(
      const hand_over::StateVersions& reader) = 0;
  // Sessions that have not changed since LookAtSessions.
  virtual StatusOr<std::vector<uint8_t>> WriteUnchanged(const hand_over::StateVersions& reader) = 0;
  // State that changes; while quiet. EAGAIN: a session changed after WriteUnchanged.
  virtual StatusOr<std::vector<uint8_t>> WriteState(const hand_over::StateVersions& reader) = 0;
  // The take-over ended without success.
  virtual void OnRefused(take_over::Refusal refusal, const std::string& text) = 0;
  // The process `successor` is the gateway; this one must end and leave everything in place.
  virtual void Leave(pid_t successor, Duration blackout) = 0;
};

class TakeOverServer {
 public:
  TakeOverServer(ControlLoop& loop, TakeOverHost& host, std::string version,
                 take_over::StepTimes& steps)
      : loop_(loop), host_(host), version_(std::move(version)), steps_(steps) {}
  ~TakeOverServer() { Stop(); }
  TakeOverServer(const TakeOverServer&) = delete;
  TakeOverServer& operator=(const TakeOverServer&) = delete;

  // Listens at the path. `inherited`: may have the socket; nullptr: none.
  Status Start(const std::string& path, InheritedFds* inherited);
  // Ends a take-over in progress and removes the socket.
  void Stop();
  void Offer(OfferedFds& fds) const;
  // Tells the successor that this process has left. The socket stays.
  void Leave() { CloseConnection(); }
  // Returns true from the time at which another process began to prepare itself: what it was told
  // of this gateway must stay true.
  bool is_in_progress() const {
    return rules_.state() >= take_over::Predecessor::State::kPreparing;
  }
  // Returns true between COMMIT and the successor's answer or end.
  bool is_decided() const { return !rules_.is_gateway() && rules_.state() != kLeft; }

 private:
  using Step = take_over::Predecessor::Step;
  static constexpr auto kLeft = take_over::Predecessor::State::kLeft;

  void OnConnection();
  void OnMessages();
  Step Handle(take_over::Connection::Received& received);
  Step OnHello(const take_over::Hello& hello);
  void Do(const Step& step);
  void Do(take_over::PredecessorAction action);
  void PrepareOffer();
  void SendOffer();
  void SendDescriptors(const OfferedFds& fds);
  void SendState();
  Status SendStateFile(const std::vector<uint8_t>& state);
  void NotWritten(take_over::Refusal refusal, const std::string& text);
  void RefuseOther(UniqueFd socket);
  void CloseConnection();
  void Watch();
  void SetDeadline();
  void KillSuccessor() const;

  ControlLoop& loop_;
  TakeOverHost& host_;
  const std::string version_;
  take_over::StepTimes& steps_;
  std::string path_;
  UniqueFd listener_;
  ControlLoop::WatchId listener_watch_ = 0;

  take_over::Predecessor rules_;
  take_over::Connection connection_;
  ControlLoop::WatchId connection_watch_ = 0;
  ControlLoop::TimerId deadline_ = 0;
  ControlLoop::TimerId offer_ = 0;
  take_over::Predecessor::State deadline_of_ = take_over::Predecessor::State::kServing;
  pid_t successor_ = 0;
  UniqueFd process_;  // pidfd of the successor, if the system has one
  hand_over::StateVersions versions_;
  take_over::SentDescriptors sent_;
  std::vector<uint8_t> foundation_;  // as it was sent
  Duration blackout_;
  // Last reason of either side.
  take_over::Refuse refuse_;
};

}  // namespace rocegw::daemon
