// SPDX-License-Identifier: Apache-2.0
// What the owner of a frame needs to build it again: kept for each frame in flight on a channel
// instead of its bytes. Plain data; meaning is the owner's.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"

namespace rocegw::flow {

struct FrameRef {
  SlotHandle owner;  // the queue pair
  uint32_t message = 0;
  uint32_t offset = 0;  // of the payload in the message
  uint16_t length = 0;  // payload bytes
  uint8_t kind = 0;     // wire::FrameKind
  uint8_t extra = 0;    // attempt
};

}  // namespace rocegw::flow
