// SPDX-License-Identifier: Apache-2.0
// Current time as a message, in nanoseconds: protobuf's own function has only whole seconds. Any
// thread.
#pragma once

#include <google/protobuf/timestamp.pb.h>

namespace rocegw::model {

google::protobuf::Timestamp Now();

}  // namespace rocegw::model
