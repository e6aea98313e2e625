// SPDX-License-Identifier: Apache-2.0
// Rules of the new process during a take-over, as a state machine without IO. Nothing that this
// side does before COMMIT is visible outside of the two processes. If the predecessor's process
// ends before COMMIT, this side starts as an ordinary gateway, which the locks against a second
// gateway permit only then.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gateway/take_over/refusal.h"

namespace rocegw::take_over {

enum class SuccessorAction : uint8_t {
  kSendHello,
  kSendPrepared,
  kBuild,  // builds all parts from descriptors and state, without acting; then OnBuilt or OnFailed
  kSendReady,
  kAct,  // is the gateway; then OnActing or OnFailed
  kSendServing,
  kSendRefuse,     // with the step's reason
  kGiveUp,         // ends this process
  kStartOrdinary,  // drops what was received and starts without a predecessor
};

class Successor {
 public:
  enum class State : uint8_t {
    kAsking,          // waits for OFFER
    kPreparing,       // waits for descriptors
    kAwaitingState,   // waits for STATE
    kBuilding,        // builds
    kAwaitingCommit,  // waits for COMMIT
    kActing,          // becomes the gateway
    kServing,         // is the gateway
    kGaveUp,
    kOrdinary,
  };
  struct Step {
    std::vector<SuccessorAction> actions;
    std::optional<Refusal> refusal;  // set with kGiveUp
  };

  State state() const { return state_; }

  Step Begin();
  Step OnOffer();
  // All offered descriptors arrived and are what they should be.
  Step OnDescriptors();
  // All parts of the state arrived.
  Step OnState();
  Step OnBuilt();
  Step OnCommit();
  Step OnActing();
  Step OnFailed(Refusal refusal);
  Step OnRefused(Refusal refusal);
  // The predecessor's process ended.
  Step OnClosed();
  Step OnDeadline();
  Step OnMalformed() { return OnFailed(Refusal::kProtocol); }

 private:
  Step Advance(State from, State to, std::vector<SuccessorAction> actions);

  State state_ = State::kAsking;
};

}  // namespace rocegw::take_over
