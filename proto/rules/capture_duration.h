// SPDX-License-Identifier: Apache-2.0
// How long a capture lasts; the rule that annotations of fields cannot say. Any thread.
#pragma once

#include <chrono>
#include <optional>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::rules {

inline constexpr char kCaptureDurationRule[] = "must be more than 0 and at most 600 s";

// What is asked for, or 10 s; nothing: it breaks the rule.
std::optional<std::chrono::nanoseconds> CaptureDurationOf(
    const gateway::v1::CaptureRequest& request);

}  // namespace rocegw::rules
