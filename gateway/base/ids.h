// SPDX-License-Identifier: Apache-2.0
// Identifiers of protocol objects as types, so that a QPN cannot be passed as a key. Values are in
// host order.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace rocegw {

// Queue pair number, 24 bits. 0 is invalid, 1 is the GSI, 0xFFFFFF is multicast (IBTA 3.5.10).
struct Qpn {
  uint32_t value = 0;
  auto operator<=>(const Qpn&) const = default;  // NOLINT(modernize-use-nullptr)
};
inline constexpr Qpn kInvalidQpn{0};
inline constexpr Qpn kGsiQpn{1};
inline constexpr Qpn kMulticastQpn{0xFFFFFF};

// L_Key or R_Key of a memory region; both are the same number in this gateway.
struct MemoryKey {
  uint32_t value = 0;
  auto operator<=>(const MemoryKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Index of a worker in this daemon.
using WorkerIndex = uint16_t;

// Client session (one attached process). Ids are never reused while the daemon runs.
struct SessionId {
  uint32_t value = 0;
  auto operator<=>(const SessionId&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Slot and generation in a worker's table: a stale handle is a counted miss, never a dangling
// pointer.
struct SlotHandle {
  uint32_t index = 0;
  uint32_t generation = 0;
  auto operator<=>(const SlotHandle&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace rocegw

template <>
struct std::hash<rocegw::Qpn> {
  size_t operator()(rocegw::Qpn qpn) const noexcept { return std::hash<uint32_t>()(qpn.value); }
};
template <>
struct std::hash<rocegw::MemoryKey> {
  size_t operator()(rocegw::MemoryKey key) const noexcept {
    return std::hash<uint32_t>()(key.value);
  }
};
template <>
struct std::hash<rocegw::SessionId> {
  size_t operator()(rocegw::SessionId id) const noexcept { return std::hash<uint32_t>()(id.value); }
};
