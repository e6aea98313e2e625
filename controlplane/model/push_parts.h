// SPDX-License-Identifier: Apache-2.0
// Push as a sequence of messages: each part has some of the objects and the whole head. Pure; any
// thread.
#pragma once

#include <cstddef>
#include <vector>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::model {

// Bytes of objects per part; gRPC limits messages to 4 MiB.
inline constexpr size_t kPushPartBytes = size_t{512} << 10;

// Returns at least one part; objects stay in order.
std::vector<types::v1::Push> InParts(types::v1::Push whole, size_t part_bytes = kPushPartBytes);

}  // namespace rocegw::model
