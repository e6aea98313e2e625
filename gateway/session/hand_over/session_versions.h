// SPDX-License-Identifier: Apache-2.0
// Versions of the state of sessions that differ in more than fields.
#pragma once

#include <algorithm>

#include "gateway/hand_over/state_versions.h"

namespace rocegw::session {

// Returns true if sessions go ahead of the rest (AttachServer::HandOverUnchanged) between this
// process and a reader with these versions. The first version has the foundation alone there.
inline bool SessionsGoAhead(const hand_over::StateVersions& reader) {
  const auto kind = hand_over::StateKind::kSessions;
  const uint16_t own = hand_over::NewestVersion(hand_over::kStateKinds[*hand_over::IndexOf(kind)]);
  return std::min(own, reader.Of(kind)) >= 2;
}

}  // namespace rocegw::session
