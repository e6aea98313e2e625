// SPDX-License-Identifier: Apache-2.0
// Decorates a port so that a tap can record what passes. Costs one relaxed load per burst while no
// capture runs. Sent packets are recorded with the IPv4 ID 0 that a UDP socket would give them, and
// the ICRC that goes with it. Belongs to its worker, like the port inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/port/capture_tap.h"
#include "gateway/port/packet_port.h"

namespace rocegw::port {

class CapturePort final : public PacketPort {
 public:
  // Both must outlive the port; one tap serves all queues.
  CapturePort(PacketPort& inner, CaptureTap& tap) : inner_(inner), tap_(tap) {}

  PortLimits limits() const override { return inner_.limits(); }
  TxPacket* Acquire() override { return inner_.Acquire(); }
  void Release(TxPacket* packet) override { inner_.Release(packet); }
  size_t Transmit(std::span<TxPacket* const> packets) override;
  bool Flush() override { return inner_.Flush(); }
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return inner_.wake_fd(); }
  const PortCounters& counters() const override { return inner_.counters(); }

 private:
  PacketPort& inner_;
  CaptureTap& tap_;
  std::vector<uint8_t> blocks_;
  std::vector<size_t> ends_;  // of each packet's block
};

}  // namespace rocegw::port
