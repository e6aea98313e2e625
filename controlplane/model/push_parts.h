// SPDX-License-Identifier: Apache-2.0
// A push as the messages that carry it: each part has some of its objects and all of its head.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "rocegw/types/v1/push.pb.h"

namespace rocegw::model {

// Bytes of objects in one part; messages of gRPC end at 4 MiB.
inline constexpr size_t kPushPartBytes = size_t{512} << 10;

// At least one part; objects stay in their order.
std::vector<types::v1::Push> InParts(types::v1::Push whole, size_t part_bytes = kPushPartBytes);

}  // namespace rocegw::model
