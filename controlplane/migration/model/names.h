// SPDX-License-Identifier: Apache-2.0
// Enumerations of migrations and their words in files, tables and documents. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rocegw::migration {

// Path of a node's storage traffic.
enum class Transport : uint8_t { kTcp, kGateway, kRnic };

// How a storage system changes its transport (docs/operate/migration.md).
enum class SystemClass : uint8_t {
  kNegotiated,  // A: peers negotiate and fall back
  kDualPath,    // B: both paths exist at the same time
  kFlagDay,     // C: one transport for all peers
  kPerClient,   // D: each client chooses at its start
};

// Ability of a client to follow when its nodes change their transport.
enum class ClientKind : uint8_t { kSwitched, kPinned, kUnknown };

enum class MigrationState : uint8_t {
  kDraft,
  kPlanned,
  kPreflighted,
  kRunning,
  kPaused,
  kAwaitingApproval,
  kRollingBack,
  kRolledBack,
  kFailed,
  kCompleted,
  kFinalizing,
  kFinalized,
  kAborted,
};

enum class PauseReason : uint8_t {
  kNone,
  kPerson,
  kGate,
  kInconclusive,
  kDrift,
  kWindowClosed,
  kLostNode,
  kNodeFailed,
  kNodeBlocked,
};

enum class WaveState : uint8_t { kWaiting, kCanary, kRunning, kSoaking, kVerified, kHeld };

enum class NodeState : uint8_t {
  kPending,
  kBlocked,
  kReady,
  // Two paths at the same time.
  kPathAdded,
  kPathVerified,
  kPreferred,
  kOldDrained,
  // Restart of the node.
  kCordoned,
  kDraining,
  kStopped,
  kSwitched,
  kStarted,
  kRejoined,
  kVerifying,
  // Both.
  kSoaking,
  kDone,
  kOldRemoved,
  kRollingBack,
  kRolledBack,
  kRollbackFailed,
  kQuarantined,
  kSkipped,
};

// Call of an adapter for one node.
enum class Step : uint8_t {
  kHealth,
  kOkToStop,
  kBackup,
  kAddPath,
  kVerifyPath,
  kSwitch,
  kDrain,
  kVerify,
  kCordon,
  kStop,
  kStart,
  kRejoin,
  kUncordon,
  kRemoveOld,
  // The way back.
  kSwitchBack,
  kDrainNew,
  kRemoveNew,
  kRestore,
  kVerifyOld,
};

enum class Outcome : uint8_t {
  kDone,
  kNotYet,        // asked again until the step's deadline
  kFailed,        // the node goes back
  kInconclusive,  // the tool answered, and nothing follows from the answer: pause
  kUnparsable,    // the answer is not understood: pause
  kTimedOut,      // no answer within the deadline
  kStaleEpoch,    // the node follows a newer controller
};

std::string_view WordOf(Transport value);
std::string_view WordOf(SystemClass value);
std::string_view WordOf(ClientKind value);
std::string_view WordOf(MigrationState value);
std::string_view WordOf(PauseReason value);
std::string_view WordOf(WaveState value);
std::string_view WordOf(NodeState value);
std::string_view WordOf(Step value);
std::string_view WordOf(Outcome value);

// Instantiated for the enumerations above.
template <typename Enum>
std::optional<Enum> FromWord(std::string_view word);

}  // namespace rocegw::migration
