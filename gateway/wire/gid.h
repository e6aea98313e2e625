// SPDX-License-Identifier: Apache-2.0
// RoCEv2 global identifier: an IPv6 address, or an IPv4 address as ::ffff:a.b.c.d (IBTA annex
// A17.4.5.2).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "gateway/base/mix.h"

namespace rocegw::wire {

struct Gid {
  std::array<uint8_t, 16> bytes{};  // network order

  auto operator<=>(const Gid&) const = default;  // NOLINT(modernize-use-nullptr)
  // Compares two words. glibc's memcmp reads 32 bytes, masked, and with them the next cache line.
  bool operator==(const Gid& other) const {
    return Word(0) == other.Word(0) && Word(1) == other.Word(1);
  }

  static Gid FromV4(uint32_t address_host_order) {
    Gid gid;
    gid.bytes[10] = gid.bytes[11] = 0xFF;
    for (int i = 0; i < 4; ++i)
      gid.bytes[12 + i] = static_cast<uint8_t>(address_host_order >> (24 - 8 * i));
    return gid;
  }
  // Mixes the address into a hash.
  uint64_t MixInto(uint64_t hash) const {
    for (size_t i = 0; i < bytes.size(); i += 8) {
      uint64_t word = 0;
      for (size_t k = 0; k < 8; ++k) word = word << 8 | bytes[i + k];
      hash = Mix(hash ^ word);
    }
    return hash;
  }
  bool IsV4() const {
    static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return std::memcmp(bytes.data(), kPrefix, sizeof kPrefix) == 0;
  }
  // Returns the IPv4 address; only meaningful if IsV4().
  uint32_t V4() const {
    return static_cast<uint32_t>(bytes[12]) << 24 | static_cast<uint32_t>(bytes[13]) << 16 |
           static_cast<uint32_t>(bytes[14]) << 8 | bytes[15];
  }
  // Returns true for the address of a group (RFC 1112, RFC 4291).
  bool IsMulticast() const { return IsV4() ? bytes[12] >> 4 == 0xE : bytes[0] == 0xFF; }
  bool IsZero() const { return *this == Gid{}; }

 private:
  uint64_t Word(size_t index) const {
    uint64_t word;
    std::memcpy(&word, bytes.data() + 8 * index, sizeof word);
    return word;
  }
};

// Parses "192.0.2.1" or "2001:db8::1"; nothing: not an address.
std::optional<Gid> ParseGid(const std::string& text);
// Returns the text that ParseGid parses; "" for the zero GID.
std::string AddressText(const Gid& gid);

}  // namespace rocegw::wire
