// SPDX-License-Identifier: Apache-2.0
// Makes seals over new audit records (chain.h). One controller does it at a time: its seals carry
// the fence of its term, and a seal that somebody else has made meanwhile is never replaced.
#pragma once

#include <optional>
#include <string>

#include "controlplane/store/store.h"

namespace rocegw::audit {

inline constexpr std::string_view kSealPrefix = "seal/";

// Waits. nullopt: nothing is new. Else the head of the chain now, which is worth being kept outside
// of the store. ECANCELED: another controller does it.
StatusOr<std::optional<std::string>> SealNew(store::Store& store, const store::Compare& fence);

}  // namespace rocegw::audit
