// SPDX-License-Identifier: Apache-2.0
// Bytes of a value, as messages to programs and between the daemon's processes carry them.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

namespace rocegw::session {

template <typename T>
std::span<const uint8_t> BytesOf(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const uint8_t*>(&value), sizeof value};
}
template <typename T>
std::span<uint8_t> BytesOf(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<uint8_t*>(&value), sizeof value};
}

}  // namespace rocegw::session
