// SPDX-License-Identifier: Apache-2.0
#include "proto/rules/capture_duration.h"

#include <google/protobuf/util/time_util.h>

namespace rocegw::rules {

std::optional<std::chrono::nanoseconds> CaptureDurationOf(
    const gateway::v1::CaptureRequest& request) {
  using google::protobuf::util::TimeUtil;
  if (!request.has_duration()) return std::chrono::seconds(10);
  const std::chrono::nanoseconds asked(TimeUtil::DurationToNanoseconds(request.duration()));
  if (asked <= asked.zero() || asked > std::chrono::seconds(600)) return std::nullopt;
  return asked;
}

}  // namespace rocegw::rules
