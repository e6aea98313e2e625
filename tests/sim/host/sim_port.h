// SPDX-License-Identifier: Apache-2.0
// Queue of one worker in a virtual host's NIC. Packets are sealed here, wait in the NIC's queue and
// leave at the cable's rate. With a full queue, Acquire returns nullptr, and the host wakes its
// worker when half of the queue has left. Arriving packets wait in a bounded receive queue, which
// overflows as a NIC's does.
//
// Owned by its Host; one thread. CPU time: packets are ready for the NIC once the worker has spent
// the time for them (BeginTurn).
#pragma once

#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/port/packet_port.h"
#include "tests/sim/network/network.h"

namespace rocegw::sim {

struct NicConfig {
  size_t transmit_packets = 128;  // a worker's packets: acquired, waiting or being sent
  size_t receive_packets = 4096;
  bool ip_id_visible = true;  // false: as with UDP sockets, where the IPv4 ID must be recovered
  // As TxPacket::outside_from. The NIC reads a payload by reference in Transmit.
  uint32_t outside_from = port::TxPacket::kNeverOutside;
};

// CPU time of a worker in nanoseconds.
struct CpuCost {
  int64_t turn = 100;  // an iteration, whatever it does
  int64_t receive = 40;
  int64_t send = 40;
};

class SimPort final : public port::PacketPort {
 public:
  SimPort(Network& network, const NicConfig& nic, const CpuCost& cost, uint32_t number);
  void Attach(Link& uplink) { uplink_ = &uplink; }

  // Starts an iteration of the worker; the times and counts below are those of this iteration.
  void BeginTurn();
  int64_t spent() const { return spent_; }
  bool moved() const { return moved_; }
  // Returns true if Acquire or Transmit had to refuse in this iteration.
  bool pushed_back() const { return pushed_back_; }
  // Returns when half of the queue has left.
  TimePoint RoomAt();

  // Takes a packet from the network.
  void Enqueue(Packet* packet);
  bool has_received() const { return !received_.empty(); }
  uint64_t overflows() const { return overflows_; }
  uint64_t sent() const { return sent_; }

  port::PortLimits limits() const override;
  port::TxPacket* Acquire() override;
  void Release(port::TxPacket* packet) override;
  size_t Transmit(std::span<port::TxPacket* const> packets) override;
  bool Flush() override { return true; }
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return -1; }
  const port::PortCounters& counters() const override { return counters_; }

 private:
  size_t Waiting();

  Network& network_;
  const NicConfig nic_;
  const CpuCost cost_;
  const uint32_t number_;
  Link* uplink_ = nullptr;
  size_t taken_ = 0;                // acquired, not transmitted yet
  GrowingRing<TimePoint> leaving_;  // departure times of this worker's packets in the NIC
  GrowingRing<Packet*> received_;
  std::vector<Packet*> borrowed_;  // handed out by the last Receive
  int64_t spent_ = 0;
  bool moved_ = false;
  bool pushed_back_ = false;
  uint16_t next_ip_id_ = 0;
  uint64_t overflows_ = 0;
  uint64_t sent_ = 0;
  port::PortCounters counters_;
};

}  // namespace rocegw::sim
