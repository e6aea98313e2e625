// SPDX-License-Identifier: Apache-2.0
// Rules of the running gateway during a take-over, as a state machine without IO. Events go in,
// actions come out and are done in order. The message COMMIT decides: before this side sends it,
// this side is the gateway or can be it again; afterwards only the successor is, and this side acts
// again only if the successor's process ended before it reported that it serves.
//
// A closed connection means that the other process has ended, because each side sends REFUSE before
// it closes, and the kernel closes a process's descriptors only after its last instruction.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/take_over/refusal.h"

namespace rocegw::take_over {

enum class PredecessorAction : uint8_t {
  kOffer,      // sends OFFER, the descriptors and the state that does not change
  kRefuse,     // sends REFUSE with the step's reason
  kClose,      // closes the connection
  kQuieten,    // stops all activity; then OnQuiet or OnNotQuiet
  kResume,     // is the gateway again
  kSendState,  // sends the descriptors that came since, and the state that changes
  kCommit,     // sends COMMIT
  kKill,       // ends the successor's process
  kLeave,      // ends this process without touching what the successor serves
};

class Predecessor {
 public:
  enum class State : uint8_t {
    kServing,    // no take-over
    kGreeting,   // waits for HELLO
    kPreparing,  // waits for PREPARED
    kQuieting,   // becomes quiet
    kSwitching,  // quiet; waits for READY
    kCommitted,  // waits for SERVING
    kKilling,    // waits for the end of the successor's process, whatever it still says
    kLeft,
  };
  struct Step {
    std::vector<PredecessorAction> actions;
    // Set if the take-over ended without success in this step.
    std::optional<Refusal> refusal;
  };

  State state() const { return state_; }
  // Returns true while this process is the gateway or can be it again without the end of the
  // successor.
  bool is_gateway() const { return state_ < State::kCommitted; }

  Step OnConnected();
  // `refusal`: this gateway's verdict on the successor's HELLO.
  Step OnHello(std::optional<Refusal> refusal);
  Step OnPrepared();
  Step OnQuiet();
  Step OnNotQuiet(Refusal refusal);
  // A state cannot be written.
  Step OnNotWritten(Refusal refusal);
  Step OnReady();
  Step OnServing();
  // The successor gave up.
  Step OnRefused(Refusal refusal);
  // The successor's process ended.
  Step OnClosed();
  Step OnDeadline();
  // The connection carried something that is no message of this protocol.
  Step OnMalformed();

 private:
  Step Advance(State from, State to, PredecessorAction action);
  Step Kill();
  // Ends the take-over; the successor has ended or has not received COMMIT.
  Step Abandon(Refusal refusal, bool tell);

  State state_ = State::kServing;
};

}  // namespace rocegw::take_over
