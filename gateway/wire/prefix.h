// SPDX-License-Identifier: Apache-2.0
// Address prefixes and lists of them. Plain values, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gateway/wire/gid.h"

namespace rocegw::wire {

struct Prefix {
  Gid address;
  uint8_t bits = 0;  // bits of the 16-byte form: 96 more than the number written for IPv4

  bool Contains(const Gid& gid) const {
    const size_t whole = bits / 8;
    if (std::memcmp(address.bytes.data(), gid.bytes.data(), whole) != 0) return false;
    const uint8_t rest = bits % 8;
    return rest == 0 || ((address.bytes[whole] ^ gid.bytes[whole]) >> (8 - rest)) == 0;
  }
  bool operator==(const Prefix&) const = default;
};

// Returns true if a prefix contains the address, or if the list is empty.
inline bool Contain(const std::vector<Prefix>& prefixes, const Gid& gid) {
  if (prefixes.empty()) return true;
  for (const Prefix& prefix : prefixes) {
    if (prefix.Contains(gid)) return true;
  }
  return false;
}

}  // namespace rocegw::wire
