// SPDX-License-Identifier: Apache-2.0
#include "gateway/hand_over/state_versions.h"

#include <algorithm>

#include "gateway/hand_over/state_stream.h"

namespace rocegw::hand_over {
namespace {

constexpr uint32_t kMostKinds = 1024;

constexpr bool NumbersAreUnique() {
  for (size_t i = 0; i < kStateKindCount; ++i) {
    for (size_t k = 0; k < i; ++k)
      if (kStateKinds[i].kind == kStateKinds[k].kind) return false;
    const StateKindInfo& kind = kStateKinds[i];
    if (kind.oldest == 0 || kind.oldest > kind.version) return false;
  }
  return true;
}
static_assert(NumbersAreUnique());

uint16_t (*version_limit)(const StateKindInfo& kind) = nullptr;

}  // namespace

void LimitVersions(uint16_t (*limit)(const StateKindInfo& kind)) { version_limit = limit; }

uint16_t NewestVersion(const StateKindInfo& kind) {
  return version_limit == nullptr ? kind.version : std::min(kind.version, version_limit(kind));
}

std::optional<size_t> IndexOf(StateKind kind) {
  for (size_t i = 0; i < kStateKindCount; ++i)
    if (kStateKinds[i].kind == kind) return i;
  return std::nullopt;
}

StateVersions::StateVersions() {
  for (size_t i = 0; i < kStateKindCount; ++i) versions_[i] = NewestVersion(kStateKinds[i]);
}

const char* StateVersions::Unwritable() const {
  for (size_t i = 0; i < kStateKindCount; ++i)
    if (versions_[i] < kStateKinds[i].oldest) return kStateKinds[i].name;
  return nullptr;
}

void StateVersions::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kVersions);
  const uint32_t count = state.Count(kStateKindCount, kMostKinds);
  if (state.reading()) versions_.fill(0);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    const StateKindInfo& own = kStateKinds[std::min<size_t>(i, kStateKindCount - 1)];
    const auto kind = static_cast<StateKind>(state.Carry(static_cast<uint16_t>(own.kind)));
    const uint16_t version = state.Carry(state.reading() ? uint16_t{0} : Of(own.kind));
    if (state.reading() && IndexOf(kind).has_value()) Set(kind, version);
  }
}

}  // namespace rocegw::hand_over
