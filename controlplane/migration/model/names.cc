// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/model/names.h"

#include <array>
#include <cstddef>

namespace rocegw::migration {
namespace {

// Words in the order of the enumerators.
template <typename Enum>
struct Words;

template <>
struct Words<Transport> {
  static constexpr auto kWords = std::to_array<std::string_view>({"tcp", "gateway", "rnic"});
};
template <>
struct Words<SystemClass> {
  static constexpr auto kWords =
      std::to_array<std::string_view>({"negotiated", "dual-path", "flag-day", "per-client"});
};
template <>
struct Words<ClientKind> {
  static constexpr auto kWords = std::to_array<std::string_view>({"switched", "pinned", "unknown"});
};
template <>
struct Words<MigrationState> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"DRAFT", "PLANNED", "PREFLIGHTED", "RUNNING", "PAUSED", "AWAITING_APPROVAL", "ROLLING_BACK",
       "ROLLED_BACK", "FAILED", "COMPLETED", "FINALIZING", "FINALIZED", "ABORTED"});
};
template <>
struct Words<PauseReason> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"none", "person", "gate", "inconclusive", "drift", "window-closed", "lost-node",
       "node-failed", "node-blocked"});
};
template <>
struct Words<WaveState> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"WAITING", "CANARY", "RUNNING", "SOAKING", "VERIFIED", "HELD"});
};
template <>
struct Words<NodeState> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"PENDING",     "BLOCKED",     "READY",        "PATH_ADDED",  "PATH_VERIFIED",
       "PREFERRED",   "OLD_DRAINED", "CORDONED",     "DRAINING",    "STOPPED",
       "SWITCHED",    "STARTED",     "REJOINED",     "VERIFYING",   "SOAKING",
       "DONE",        "OLD_REMOVED", "ROLLING_BACK", "ROLLED_BACK", "ROLLBACK_FAILED",
       "QUARANTINED", "SKIPPED"});
};
template <>
struct Words<Step> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"health", "ok-to-stop", "backup", "add-path", "verify-path", "switch", "drain", "verify",
       "cordon", "stop", "start", "rejoin", "uncordon", "remove-old", "switch-back", "drain-new",
       "remove-new", "restore", "verify-old"});
};
template <>
struct Words<Outcome> {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"done", "not-yet", "failed", "inconclusive", "unparsable", "timed-out", "stale-epoch"});
};

template <typename Enum>
std::string_view Word(Enum value) {
  const auto& words = Words<Enum>::kWords;
  const auto index = static_cast<size_t>(value);
  return index < words.size() ? words[index] : "?";
}

}  // namespace

std::string_view WordOf(Transport value) { return Word(value); }
std::string_view WordOf(SystemClass value) { return Word(value); }
std::string_view WordOf(ClientKind value) { return Word(value); }
std::string_view WordOf(MigrationState value) { return Word(value); }
std::string_view WordOf(PauseReason value) { return Word(value); }
std::string_view WordOf(WaveState value) { return Word(value); }
std::string_view WordOf(NodeState value) { return Word(value); }
std::string_view WordOf(Step value) { return Word(value); }
std::string_view WordOf(Outcome value) { return Word(value); }

template <typename Enum>
std::optional<Enum> FromWord(std::string_view word) {
  const auto& words = Words<Enum>::kWords;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template std::optional<Transport> FromWord(std::string_view);
template std::optional<SystemClass> FromWord(std::string_view);
template std::optional<ClientKind> FromWord(std::string_view);
template std::optional<MigrationState> FromWord(std::string_view);
template std::optional<PauseReason> FromWord(std::string_view);
template std::optional<WaveState> FromWord(std::string_view);
template std::optional<NodeState> FromWord(std::string_view);
template std::optional<Step> FromWord(std::string_view);
template std::optional<Outcome> FromWord(std::string_view);

}  // namespace rocegw::migration
