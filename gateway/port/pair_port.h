// SPDX-License-Identifier: Apache-2.0
// Two ports joined in memory, with any number of queues per side: the network of unit tests, the
// simulator and benchmarks. Packets move as pointers over single-producer single-consumer rings,
// one for each (sending queue, receiving queue), and return to their pool the same way: no copy, no
// lock, no allocation after construction. One thread may drive everything, or each queue has its
// own thread. The receiving side's steering table selects the queue of a packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gateway/base/containers/spsc_ring.h"
#include "gateway/port/packet_pool.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/steering.h"

namespace rocegw::port {

struct PairConfig {
  // A side has steering[side].worker_count() queues.
  SteeringTable steering[2] = {SteeringTable(1), SteeringTable(1)};
  size_t packets_per_queue = kTransmitBuffers;
  size_t queue_depth = 0;     // limit of packets between two queues; 0: the pool only
  size_t mtu = 4200;          // MTU of the simulated interface, IP header included
  bool ip_id_visible = true;  // false: the receiver does not see the IPv4 ID, as with UDP sockets
  uint16_t first_ip_id = 0;
  // As TxPacket::outside_from. A payload by reference is copied in Transmit.
  uint32_t outside_from = TxPacket::kNeverOutside;
};

class PairLink;

class PairPort final : public PacketPort {
 public:
  PortLimits limits() const override;
  TxPacket* Acquire() override;
  void Release(TxPacket* packet) override;
  size_t Transmit(std::span<TxPacket* const> packets) override;
  bool Flush() override { return true; }
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return -1; }
  const PortCounters& counters() const override { return counters_; }

 private:
  friend class PairLink;
  struct Slot : TxPacket {
    uint16_t ip_id = 0;
  };
  // Rings from one queue to one queue of the other side.
  struct PacketRings {
    PacketRings(size_t depth, size_t pool_size) : packets(depth), returned(pool_size) {}
    SpscRing<Slot*> packets;
    SpscRing<Slot*> returned;
  };
  struct Borrowed {
    Slot* slot;
    PacketRings* rings;
  };

  PairPort(const PairConfig& config, const SteeringTable& remote_steering);
  void Reclaim();

  const size_t max_datagram_;
  const bool ip_id_visible_;
  const uint32_t outside_from_;
  const SteeringTable remote_steering_;
  uint16_t next_ip_id_;
  PacketPool<Slot> pool_;
  std::vector<PacketRings*> out_;  // indexed by queue of the other side
  std::vector<PacketRings*> in_;
  size_t next_in_ = 0;
  std::vector<Borrowed> borrowed_;  // returned by the last Receive
  PortCounters counters_;
};

class PairLink {
 public:
  explicit PairLink(const PairConfig& config = {});

  // `side` is 0 or 1.
  PairPort& port(size_t side, size_t queue = 0) { return *ports_[side][queue]; }
  size_t queues(size_t side) const { return ports_[side].size(); }

 private:
  std::vector<std::unique_ptr<PairPort::PacketRings>> rings_;
  std::vector<std::unique_ptr<PairPort>> ports_[2];
};

}  // namespace rocegw::port
