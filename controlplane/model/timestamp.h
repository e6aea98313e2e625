// SPDX-License-Identifier: Apache-2.0
// Current time as a message, in nanoseconds (protobuf's own function has only whole seconds), and
// as a number. Any thread.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <cstdint>

namespace rocegw::model {

google::protobuf::Timestamp Now();

// Seconds since 1970.
int64_t SecondsNow();

}  // namespace rocegw::model
