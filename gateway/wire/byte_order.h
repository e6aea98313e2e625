// SPDX-License-Identifier: Apache-2.0
// Big-endian fields at any alignment, read from and written to raw bytes. The caller checks the
// bounds.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace rocegw::wire {

static_assert(std::endian::native == std::endian::little, "fields are swapped on every access");

template <typename T>
T LoadRaw(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void StoreRaw(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline uint16_t LoadBe16(const uint8_t* from) { return __builtin_bswap16(LoadRaw<uint16_t>(from)); }
inline uint32_t LoadBe32(const uint8_t* from) { return __builtin_bswap32(LoadRaw<uint32_t>(from)); }
inline uint64_t LoadBe64(const uint8_t* from) { return __builtin_bswap64(LoadRaw<uint64_t>(from)); }
inline void StoreBe16(uint8_t* to, uint16_t value) { StoreRaw(to, __builtin_bswap16(value)); }
inline void StoreBe32(uint8_t* to, uint32_t value) { StoreRaw(to, __builtin_bswap32(value)); }
inline void StoreBe64(uint8_t* to, uint64_t value) { StoreRaw(to, __builtin_bswap64(value)); }

// Returns the low 24 bits of a word and ignores the byte in front (QPN, PSN, MSN).
inline uint32_t LoadBe24(const uint8_t* word) { return LoadBe32(word) & 0xFFFFFF; }

}  // namespace rocegw::wire
