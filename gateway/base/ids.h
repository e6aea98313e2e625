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

// Tells the pools of a gateway apart, for fair shares of what a port holds. 0: no pool.
struct PoolTag {
  uint32_t value = 0;
  auto operator<=>(const PoolTag&) const = default;  // NOLINT(modernize-use-nullptr)
};

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

// Index of a session in the table of one worker.
struct SessionIndex {
  uint32_t value = UINT32_MAX;
  auto operator<=>(const SessionIndex&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Reference to an object of one worker: owner of a timer, of a frame in flight, or of an entry in a
// wait queue. As long as a SlotHandle, because a worker keeps one for each frame in flight.
class WorkerObject {
 public:
  enum class Kind : uint32_t {
    kQueuePair,      // slot in the table of queue pairs
    kStagedCarrier,  // slot in the table of staged carriers
    kChannel,        // slot of a channel; it has no generation
    kRefusal,        // no object: a frame that refuses a message; the index is the refusing number
  };

  constexpr WorkerObject() = default;
  // Refers to a queue pair.
  constexpr WorkerObject(SlotHandle qp)  // NOLINT(google-explicit-constructor)
      : WorkerObject(Kind::kQueuePair, qp) {}
  constexpr WorkerObject(Kind kind, SlotHandle slot)
      : kind_(kind), index_(slot.index & ((1u << 30) - 1)), generation_(slot.generation) {}

  constexpr Kind kind() const { return kind_; }
  constexpr SlotHandle slot() const { return {index_, generation_}; }
  auto operator<=>(const WorkerObject&) const = default;  // NOLINT(modernize-use-nullptr)

 private:
  Kind kind_ : 2 = Kind::kQueuePair;
  uint32_t index_ : 30 = 0;
  uint32_t generation_ = 0;
};
static_assert(sizeof(WorkerObject) == sizeof(SlotHandle));

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
