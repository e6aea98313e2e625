// SPDX-License-Identifier: Apache-2.0
// Duration of a capture: a rule that field annotations cannot express. Any thread.
#pragma once

#include <chrono>
#include <optional>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::rules {

inline constexpr char kCaptureDurationRule[] = "must be more than 0 and at most 600 s";

// Returns the requested duration, or 10 s; nothing: invalid.
std::optional<std::chrono::nanoseconds> CaptureDurationOf(
    const gateway::v1::CaptureRequest& request);

}  // namespace rocegw::rules
