// SPDX-License-Identifier: Apache-2.0
// Versions of the state records (state_kinds.def) that a gateway reads. The gateway that takes over
// reports its versions first, so that the running one writes records that it reads, or refuses the
// hand-over before anything stops. Plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rocegw::hand_over {

enum class StateKind : uint16_t {
#define ROCEGW_STATE_KIND(name, number, version, oldest) k##name = (number),
#include "gateway/hand_over/state_kinds.def"
#undef ROCEGW_STATE_KIND
};

struct StateKindInfo {
  const char* name;
  StateKind kind;
  uint16_t version;  // written and read
  uint16_t oldest;   // oldest version written and read
};

inline constexpr StateKindInfo kStateKinds[] = {
#define ROCEGW_STATE_KIND(name, number, version, oldest) \
  {#name, StateKind::k##name, (version), (oldest)},
#include "gateway/hand_over/state_kinds.def"
#undef ROCEGW_STATE_KIND
};
inline constexpr size_t kStateKindCount = sizeof kStateKinds / sizeof kStateKinds[0];

// Makes this process write and read states as an older gateway does: no version of a kind above
// what `limit` returns. For tests, before the first use of versions.
void LimitVersions(uint16_t (*limit)(const StateKindInfo& kind));

// Returns the newest version of the kind that this process writes and reads.
uint16_t NewestVersion(const StateKindInfo& kind);

// Returns the index of the kind in kStateKinds; nothing: this program does not know the kind.
std::optional<size_t> IndexOf(StateKind kind);

class StateStream;

class StateVersions {
 public:
  // Starts with the versions of this program.
  StateVersions();

  // Returns the version of the kind; 0: the gateway does not know the kind.
  uint16_t Of(StateKind kind) const { return versions_[*IndexOf(kind)]; }
  void Set(StateKind kind, uint16_t version) { versions_[*IndexOf(kind)] = version; }

  // Returns the name of a kind that this program cannot write in a version that a gateway with
  // these versions reads; nullptr: there is none.
  const char* Unwritable() const;

  // Writes or reads the table. Kinds that this program does not know are skipped.
  void HandOver(StateStream& state);

 private:
  std::array<uint16_t, kStateKindCount> versions_;
};

}  // namespace rocegw::hand_over
