// SPDX-License-Identifier: Apache-2.0
// The closed list of reasons for which a received packet is not used (drop_reasons.def) as an
// enumeration.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::metrics {

enum class DropReason : uint8_t {
  kNone = 0,
#define ROCEGW_DROP(name, side, help) k_##name,
#include "gateway/metrics/drop_reasons.def"
#undef ROCEGW_DROP
  kCount,
};

inline constexpr size_t kDropReasonCount = static_cast<size_t>(DropReason::kCount);

// The name as in the list ("bad_icrc"), for labels and texts; "none" for kNone.
const char* DropReasonName(DropReason reason);
// Who is at fault: "peer" or "local"; "" for kNone.
const char* DropReasonSide(DropReason reason);
// The reason under which the metrics page counts packets of that reason. The page is open: reasons
// that tell a sender how far a guess of addresses, numbers or epochs has come are one reason there.
DropReason DropReasonOnPage(DropReason reason);
// One line for a person.
const char* DropReasonHelp(DropReason reason);

}  // namespace rocegw::metrics
