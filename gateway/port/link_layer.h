// SPDX-License-Identifier: Apache-2.0
// What a port that writes Ethernet frames itself must know besides the packet: its own addresses
// and the MAC address of the next hop. Two answers: the kernel's tables (kernel_neighbours.h) for
// an interface shared with the kernel, own ARP and neighbour discovery (own_neighbours.h) for a
// device without one. One object serves all queues of a port: every call locks, so queues keep
// answers until version() changes (neighbour_cache.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/port/frame.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

enum class Reach : uint8_t {
  kUnknown,      // being found out; ask again when version() has changed
  kNeighbour,    // through the MAC address
  kOwn,          // an address of this port
  kUnreachable,  // no route
};

class LinkLayer {
 public:
  // Room for every frame that TakeFrame yields.
  static constexpr size_t kMaxFrame = 128;

  virtual ~LinkLayer() = default;

  // Moves on when an answer may have changed. Starts at 1.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  virtual MacAddress mac() const = 0;
  virtual std::vector<wire::Gid> OwnAddresses() = 0;

  // Starts finding out what it does not know. Sets mac for kNeighbour.
  virtual Reach Resolve(const wire::Gid& destination, MacAddress& mac) = 0;

  // A received frame that is not RoCEv2: ARP and neighbour discovery are answered.
  virtual void HandleFrame(std::span<const uint8_t> frame) = 0;
  // The next frame to send on the port's behalf; its length, 0: none.
  virtual size_t TakeFrame(std::span<uint8_t, kMaxFrame> out) = 0;
  // About once a second, from any queue.
  virtual void Tick() = 0;
  // Cheap: whether TakeFrame would yield one.
  bool has_frames() const { return has_frames_.load(std::memory_order_relaxed); }

 protected:
  void Changed() { version_.fetch_add(1, std::memory_order_acq_rel); }
  void set_has_frames(bool any) { has_frames_.store(any, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> has_frames_{false};
};

// The Ethernet address of a multicast group (RFC 1112, RFC 2464); false when it is not a group.
bool MulticastMac(const wire::Gid& destination, MacAddress& mac);

}  // namespace rocegw::port
