// SPDX-License-Identifier: Apache-2.0
// Bundling of a burst: small frames and acknowledgements of one channel that leave in the same
// burst share a datagram (wire/channel_bundle.h). Only packets that are ready are bundled, so none
// waits for another one. Packets of a channel keep their order, and the burst keeps the order of
// the scheduler: an entry moves forward to a datagram that the scheduler has let through already.
// Belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gateway/port/packet_port.h"

namespace rocegw::worker {

class FrameBundler {
 public:
  // Begins a burst to a port. Packets of the previous burst are forgotten.
  void Begin(const port::PortLimits& limits) {
    limits_ = limits;
    used_ = 0;
    entries_ = bundles_ = 0;
  }
  // Copies the packet into an earlier packet of the burst. Returns false if the packet leaves by
  // itself; the next packets of its channel may be copied into it then. The bytes of both packets
  // must be complete.
  bool Join(port::TxPacket& packet);

  // Bundles of the burst, and the entries in them.
  uint32_t bundles() const { return bundles_; }
  uint32_t entries() const { return entries_; }

  // Longest datagram that becomes an entry. The copy, and the ICRC over bytes whose checksum was
  // known, must cost less than a datagram of its own.
  static constexpr uint32_t kMostJoined = 1024;

 private:
  // Newest packet of a channel in this burst.
  struct Open {
    port::TxPacket* packet = nullptr;
    size_t most = 0;  // longest datagram, without ICRC
    bool bundle = false;
  };

  Open* Find(const port::TxPacket& packet);
  void Add(port::TxPacket& packet);

  port::PortLimits limits_;
  // Channels of the burst; the oldest entry is replaced.
  std::array<Open, 8> open_;
  size_t used_ = 0;  // entries that were ever set in this burst
  uint32_t bundles_ = 0;
  uint32_t entries_ = 0;
};

}  // namespace rocegw::worker
