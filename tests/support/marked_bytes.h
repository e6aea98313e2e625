// SPDX-License-Identifier: Apache-2.0
// Payload bytes computed from sender, message and offset, so that a receiver can check them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocegw::testing {

inline uint8_t Mark(size_t sender, uint64_t message, size_t offset) {
  return static_cast<uint8_t>(sender * 41 + message * 13 + offset * 7);
}

}  // namespace rocegw::testing
