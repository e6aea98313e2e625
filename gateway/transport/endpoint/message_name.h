// SPDX-License-Identifier: Apache-2.0
// Name of a message to an endpoint, as the endpoint's target knows it.
#pragma once

#include <cstdint>

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

}  // namespace rocegw::transport
