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
  kPrepare,  // starts all parts without acting, while the other gateway serves; then OnPrepared or
             // OnFailed
  kSendPrepared,
  kBuild,  // gives the parts the state of the other gateway; then OnBuilt or OnFailed
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
    kReceiving,       // waits for descriptors and the state that does not change
    kPreparing,       // starts its parts
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
  // A state arrived with all its parts: first the one that does not change, behind the offered
  // descriptors, then the one that does.
  Step OnState();
  Step OnPrepared();
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
