// SPDX-License-Identifier: Apache-2.0
// IPv6 addresses that mean something on one link only (RFC 4291, 2.5.6: fe80::/10): without the
// number of the interface they name nobody.
#pragma once

#include "gateway/wire/gid.h"

namespace rocegw::wire {

inline bool IsLinkLocal(const Gid& gid) {
  return gid.bytes[0] == 0xFE && (gid.bytes[1] & 0xC0) == 0x80;
}

}  // namespace rocegw::wire
