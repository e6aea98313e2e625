// SPDX-License-Identifier: Apache-2.0
// Decorator of a port that passes packets to capture taps. Workers use it instead of the port only
// during a capture, so captures cost nothing otherwise. Sent packets are recorded with the IPv4 ID
// 0 that a UDP socket would use, and the matching ICRC. Belongs to its worker, like the inner port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/port/capture/capture_tap.h"
#include "gateway/port/packet_port.h"

namespace rocegw::port {

// Limit of simultaneous captures.
inline constexpr size_t kCaptureTaps = 4;
using CaptureTaps = std::array<CaptureTap, kCaptureTaps>;

class CapturePort final : public PacketPort {
 public:
  // All arguments outlive the port; the taps serve all queues. `interface`: number of this queue in
  // the file.
  CapturePort(PacketPort& inner, std::span<CaptureTap> taps, uint32_t interface = 0)
      : inner_(inner), taps_(taps), interface_(interface), records_(taps.size()) {}

  PortLimits limits() const override { return inner_.limits(); }
  TxPacket* Acquire() override { return inner_.Acquire(); }
  void Release(TxPacket* packet) override { inner_.Release(packet); }
  size_t Transmit(std::span<TxPacket* const> packets) override;
  bool Flush() override { return inner_.Flush(); }
  size_t Receive(std::span<wire::RxDatagram> into) override;
  bool Filter(const FloodFilter& filter) override { return inner_.Filter(filter); }
  int wake_fd() const override { return inner_.wake_fd(); }
  const PortCounters& counters() const override { return inner_.counters(); }

 private:
  // Blocks of one burst for one tap.
  struct Record {
    struct Mark {
      size_t end = 0;  // end of the blocks up to this packet
      uint64_t packets = 0;
    };
    std::vector<uint8_t> blocks;
    std::vector<Mark> marks;  // after each packet of the burst
  };

  // Returns true if a capture runs.
  bool AnyActive() const;
  void Clear();
  void Encode(const CaptureTap::Packet& packet);
  // Commits the first `count` packets of the burst.
  void Commit(size_t count);

  PacketPort& inner_;
  const std::span<CaptureTap> taps_;
  const uint32_t interface_;
  std::vector<Record> records_;  // indexed by tap
};

}  // namespace rocegw::port
