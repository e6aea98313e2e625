// SPDX-License-Identifier: Apache-2.0
// Now, as messages say it, in nanoseconds: protobuf's own knows only whole seconds. Any thread.
#pragma once

#include <google/protobuf/timestamp.pb.h>

namespace rocegw::model {

google::protobuf::Timestamp Now();

}  // namespace rocegw::model
