// SPDX-License-Identifier: Apache-2.0
// Description from which the owner of a frame can rebuild it; kept instead of the bytes for each
// frame in flight on a channel. Plain data; the owner defines the meaning of the fields.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"

namespace rocegw::flow {

struct FrameRef {
  WorkerObject owner;
  uint32_t message = 0;
  uint32_t offset = 0;  // payload offset in the message
  uint16_t length = 0;  // payload bytes
  uint8_t kind = 0;     // wire::FrameKind
  uint8_t extra = 0;    // attempt
};

// Writes or reads a description (gateway/hand_over).
template <typename Stream>
void HandOver(Stream& state, WorkerObject& object) {
  auto kind = object.kind();
  SlotHandle slot = object.slot();
  state.Enum(kind, WorkerObject::Kind::kRefusal);
  state(slot);
  object = {kind, slot};
}
template <typename Stream>
void HandOver(Stream& state, FrameRef& frame) {
  auto& [owner, message, offset, length, kind, extra] = frame;
  HandOver(state, owner);
  state(message, offset, length, kind, extra);
}

}  // namespace rocegw::flow
