// SPDX-License-Identifier: Apache-2.0
// Decorates a port so that taps can record what passes. Workers use it in the port's place only
// while a capture runs, so one costs nothing before and after. Sent packets are recorded with the
// IPv4 ID 0 that a UDP socket would give them, and the ICRC that goes with it. Belongs to its
// worker, like the port inside.
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

// Captures that can run at a time.
inline constexpr size_t kCaptureTaps = 4;
using CaptureTaps = std::array<CaptureTap, kCaptureTaps>;

class CapturePort final : public PacketPort {
 public:
  // All outlive the port; the taps serve all queues. interface: the number of this queue in the
  // file.
  CapturePort(PacketPort& inner, std::span<CaptureTap> taps, uint32_t interface = 0)
      : inner_(inner), taps_(taps), interface_(interface), records_(taps.size()) {}

  PortLimits limits() const override { return inner_.limits(); }
  TxPacket* Acquire() override { return inner_.Acquire(); }
  void Release(TxPacket* packet) override { inner_.Release(packet); }
  size_t Transmit(std::span<TxPacket* const> packets) override;
  bool Flush() override { return inner_.Flush(); }
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return inner_.wake_fd(); }
  const PortCounters& counters() const override { return inner_.counters(); }

 private:
  // What one tap takes of a burst.
  struct Record {
    struct Mark {
      size_t end = 0;  // of the blocks up to here
      uint64_t packets = 0;
    };
    std::vector<uint8_t> blocks;
    std::vector<Mark> marks;  // after each packet of the burst
  };

  // False: none is.
  bool AnyActive() const;
  void Clear();
  void Encode(const CaptureTap::Packet& packet);
  // The first so many packets of the burst.
  void Commit(size_t count);

  PacketPort& inner_;
  const std::span<CaptureTap> taps_;
  const uint32_t interface_;
  std::vector<Record> records_;  // by tap
};

}  // namespace rocegw::port
