// SPDX-License-Identifier: Apache-2.0
// Decorator of a port that neither receives nor sends: packets that workers transmit stay theirs.
// Workers use it instead of the port while another process takes over from this one. Belongs to its
// worker, like the inner port, which outlives it.
#pragma once

#include <cstddef>
#include <span>

#include "gateway/port/packet_port.h"

namespace rocegw::port {

class StillPort final : public PacketPort {
 public:
  explicit StillPort(PacketPort& inner) : inner_(inner) {}

  PortLimits limits() const override { return inner_.limits(); }
  TxPacket* Acquire() override { return inner_.Acquire(); }
  void Release(TxPacket* packet) override { inner_.Release(packet); }
  size_t Transmit(std::span<TxPacket* const> /*packets*/) override { return 0; }
  bool Flush() override { return true; }
  size_t Receive(std::span<wire::RxDatagram> /*into*/) override { return 0; }
  int wake_fd() const override { return inner_.wake_fd(); }
  const PortCounters& counters() const override { return inner_.counters(); }

 private:
  PacketPort& inner_;
};

}  // namespace rocegw::port
