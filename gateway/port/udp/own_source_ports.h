// SPDX-License-Identifier: Apache-2.0
// UDP source ports of one port group's queues, by address family. No other user of the host can
// send from a port that a socket here is bound to, so a packet from an address of this host is the
// gateway's own if and only if its source port is listed. Workers write when they open or close a
// socket, all of them read; safe between threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocegw::port {

class OwnSourcePorts {
 public:
  void Add(bool ipv4, uint16_t port) { Of(ipv4, port).fetch_add(1, std::memory_order_relaxed); }
  void Remove(bool ipv4, uint16_t port) { Of(ipv4, port).fetch_sub(1, std::memory_order_relaxed); }
  // Lists the port of the group's receive sockets for good; before the workers run.
  void SetReceiving(uint16_t port) { receiving_ = port; }
  bool Has(bool ipv4, uint16_t port) const {
    if (port == receiving_) return true;
    return port >= kFirst && holders_[Index(ipv4, port)].load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr uint16_t kFirst = 0xC000;
  static constexpr size_t kRange = 0x4000;
  static size_t Index(bool ipv4, uint16_t port) {
    return (ipv4 ? 0 : kRange) + (port - kFirst) % kRange;
  }
  std::atomic<uint16_t>& Of(bool ipv4, uint16_t port) { return holders_[Index(ipv4, port)]; }

  uint32_t receiving_ = UINT32_MAX;  // UINT32_MAX: none
  // Number of queues that hold a port: several may share it.
  std::array<std::atomic<uint16_t>, 2 * kRange> holders_{};
};

}  // namespace rocegw::port
