// SPDX-License-Identifier: Apache-2.0
// Side of the new process in a take-over: asks the running gateway, receives descriptors and state,
// and does what take_over::Successor decides. Calls block, at most for the deadline of a phase.
// Main thread, before the gateway's loop runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/time.h"
#include "gateway/base/unique_fd.h"
#include "gateway/take_over/connection.h"
#include "gateway/take_over/state_file.h"
#include "gateway/take_over/successor.h"

namespace rocegw::daemon {

class TakeOverClient {
 public:
  enum class Outcome : uint8_t {
    kGoOn,              // the awaited message is here
    kNobody,            // no gateway runs
    kRefused,           // the running gateway goes on; see refuse()
    kPredecessorEnded,  // the running gateway ended before it handed over
  };

  // Asks the gateway that listens at `path` and waits for descriptors and what does not change.
  Outcome Ask(const std::string& path, const std::string& version, std::vector<std::string> shape);
  // Reports that this process is prepared, and waits for the state that changes.
  Outcome AwaitState();
  // Reports that all parts are built, and waits for COMMIT.
  Outcome AwaitCommit();
  // Reports that this process serves.
  void SendServing(Duration blackout);
  // Reports that this process cannot start.
  void SendFailed(const std::string& text);
  // Waits, at most `wait`, until the predecessor has ended: its locks are free then.
  void AwaitEndOfPredecessor(Duration wait) const;

  InheritedFds& fds() { return fds_; }
  // State that does not change, then the state that does.
  std::span<const uint8_t> foundation() const { return foundation_.bytes(); }
  std::span<const uint8_t> state() const { return state_.bytes(); }
  // When the state that changes arrived.
  TimePoint state_began() const { return state_began_; }
  const std::string& predecessor_version() const { return version_; }
  size_t descriptors() const { return descriptors_; }
  const take_over::Refuse& refuse() const { return refuse_; }
  // Socket of the connection; it is readable when the predecessor has ended.
  int fd() const { return connection_.fd(); }

 private:
  using Step = take_over::Successor::Step;

  // Handles messages until the rules want something of the caller, or the take-over is off.
  Outcome Run();
  Step Next();
  Step Handle(take_over::Connection::Received& received);
  Step TakeState();
  Step TakeDescriptors(const take_over::Descriptors& labels, std::vector<UniqueFd>& fds);
  // Returns true if the caller must act.
  bool Do(const Step& step);

  take_over::Successor rules_;
  take_over::Connection connection_;
  UniqueFd process_;  // pidfd of the predecessor, if the system has one
  std::vector<std::string> shape_;
  std::string own_version_;
  std::string version_;
  InheritedFds fds_;
  size_t expected_ = 0;
  size_t descriptors_ = 0;
  UniqueFd state_file_;  // file of the next STATE
  take_over::StateFile foundation_;
  take_over::StateFile state_;
  TimePoint state_began_;
  take_over::Refuse refuse_;
  Outcome outcome_ = Outcome::kGoOn;
};

}  // namespace rocegw::daemon
