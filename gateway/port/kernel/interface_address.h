// SPDX-License-Identifier: Apache-2.0
// Address of an interface with its subnet. A value.
#pragma once

#include <cstdint>

#include "gateway/wire/gid.h"

namespace rocegw::port {

struct InterfaceAddress {
  wire::Gid gid;
  uint8_t prefix_length = 0;  // length within the IPv4 or IPv6 address
  bool link_local = false;

  bool operator==(const InterfaceAddress&) const = default;
};

}  // namespace rocegw::port
