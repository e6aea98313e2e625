// SPDX-License-Identifier: Apache-2.0
// Link layer of a port that writes Ethernet frames itself: the port's own addresses and the MAC
// address of the next hop. Implementations: the kernel's tables (kernel_neighbours.h) for a shared
// interface; own ARP and neighbour discovery (own_neighbours.h) for a device without one. One
// object serves all queues of a port. Every call locks, so queues cache answers until version()
// changes (neighbour_cache.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/port/frame.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

enum class Reach : uint8_t {
  kUnknown,      // being resolved; ask again when news() has changed
  kNeighbour,    // reached through the MAC address
  kOwn,          // own address of this port
  kUnreachable,  // no route
};

class LinkLayer {
 public:
  // Size that fits every frame of TakeFrame.
  static constexpr size_t kMaxFrame = 128;

  virtual ~LinkLayer() = default;

  // Changes when an answer other than kUnknown may have changed. Starts at 1.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // Changes when kUnknown may have become another answer, too: a program that looks for many
  // addresses must not make every queue forget its answers.
  uint64_t news() const { return news_.load(std::memory_order_acquire); }

  virtual MacAddress mac() const = 0;
  virtual std::vector<wire::Gid> OwnAddresses() = 0;

  // Returns how to reach a destination, and starts to resolve an unknown one. Sets `mac` for
  // kNeighbour. What is stored and asked for a pool is bounded, and takes nothing from other pools.
  virtual Reach Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) = 0;

  // Handles a received frame that is not RoCEv2: answers ARP and neighbour discovery.
  virtual void HandleFrame(std::span<const uint8_t> frame) = 0;
  // Writes the next frame to send for the port and returns its length; 0: none.
  virtual size_t TakeFrame(std::span<uint8_t, kMaxFrame> out) = 0;
  // Called about once a second, from any queue.
  virtual void Tick() = 0;
  // Returns true if TakeFrame would return a frame. Cheap.
  bool has_frames() const { return has_frames_.load(std::memory_order_relaxed); }

 protected:
  void Changed() {
    version_.fetch_add(1, std::memory_order_acq_rel);
    Learned();
  }
  void Learned() { news_.fetch_add(1, std::memory_order_acq_rel); }
  void set_has_frames(bool any) { has_frames_.store(any, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> version_{1};
  std::atomic<uint64_t> news_{1};
  std::atomic<bool> has_frames_{false};
};

// Computes the Ethernet address of a multicast group (RFC 1112, RFC 2464). Returns false for other
// addresses.
bool MulticastMac(const wire::Gid& destination, MacAddress& mac);

}  // namespace rocegw::port
