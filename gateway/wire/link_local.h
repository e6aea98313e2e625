// SPDX-License-Identifier: Apache-2.0
// IPv6 link-local addresses (RFC 4291, 2.5.6: fe80::/10), which are unique only together with the
// number of the interface.
#pragma once

#include "gateway/wire/gid.h"

namespace rocegw::wire {

inline bool IsLinkLocal(const Gid& gid) {
  return gid.bytes[0] == 0xFE && (gid.bytes[1] & 0xC0) == 0x80;
}

}  // namespace rocegw::wire
