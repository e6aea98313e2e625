// SPDX-License-Identifier: Apache-2.0
// Name of a message to an endpoint, as the endpoint's target knows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "gateway/base/mix.h"

namespace rocegw::flow {
class Carrier;
}

namespace rocegw::transport {

struct MessageName {
  const flow::Carrier* carrier = nullptr;
  uint32_t source = 0;  // number of the sending endpoint
  uint32_t message = 0;
  uint8_t attempt = 0;
  bool operator==(const MessageName&) const = default;
};

// Hashes what names a message whatever its attempt. Keyed by the address of the carrier, which no
// peer knows.
inline size_t HashOfMessage(const flow::Carrier* carrier, uint32_t source, uint32_t message) {
  const uint64_t number = uint64_t{source} << 32 | message;
  return Mix(number ^ std::hash<const void*>()(carrier));
}

}  // namespace rocegw::transport
