// SPDX-License-Identifier: Apache-2.0
// Closed list of reasons for ignoring a received packet (drop_reasons.def) as an enumeration.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::metrics {

enum class DropReason : uint8_t {
  kNone = 0,
#define ROCEGW_DROP(name, side, sender, page, help) k_##name,
#include "gateway/metrics/drop_reasons.def"
#undef ROCEGW_DROP
  kCount,
};

inline constexpr size_t kDropReasonCount = static_cast<size_t>(DropReason::kCount);

// Returns the name in the list ("bad_icrc"), for labels and texts; "none" for kNone.
const char* DropReasonName(DropReason reason);
// Returns the side at fault: "peer" or "local"; "" for kNone.
const char* DropReasonSide(DropReason reason);
// Returns true if no connection was found that the packet belongs to: anybody could have sent it.
// False for kNone. `reason` is below kCount.
bool FromAnybody(DropReason reason);
// Returns the reason under which the metrics page counts packets of that reason.
DropReason DropReasonOnPage(DropReason reason);
// Returns one line for display.
const char* DropReasonHelp(DropReason reason);

}  // namespace rocegw::metrics
