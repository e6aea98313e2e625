// SPDX-License-Identifier: Apache-2.0
// Part: a piece of a caller's request that lies in one slab. Values.
#pragma once

#include <cstdint>

namespace rocegw::far {

enum class Direction : uint8_t { kRead, kWrite };

// Request of a caller; the parts of one request are completed one by one. Opaque in this folder.
struct Request;

struct Part {
  uint64_t offset = 0;  // in the session's space
  uint32_t length = 0;  // bytes, not 0
  bool staged = false;  // data goes through the staging buffer; otherwise its memory is registered
  uint8_t* buffer = nullptr;
  Request* request = nullptr;

  uint64_t end() const { return offset + length; }
};

}  // namespace rocegw::far
