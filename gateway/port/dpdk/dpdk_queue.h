// SPDX-License-Identifier: Apache-2.0
// Queue of one worker on a DPDK port. Writes whole Ethernet frames with a new IPv4 ID per packet.
// Accepts UDP 4791 frames to own addresses and passes all other frames to the link layer. Packets
// wait a bounded time while their neighbour is resolved; packets to an own address are looped back
// here. Belongs to its worker. Only for dpdk_*.cc: needs DPDK's headers.
#pragma once

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "gateway/port/link_layer.h"
#include "gateway/port/neighbour/neighbour_cache.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"

namespace rocegw::port {

struct DpdkQueueConfig {
  uint16_t device = 0;
  int receive_queue = -1;  // -1: receives only what other workers hand over
  uint16_t transmit_queue = 0;
  std::mutex* transmit_lock = nullptr;  // set if several workers share the transmit queue
  rte_mempool* transmit_pool = nullptr;
  size_t max_datagram = 0;
  uint16_t vlan = 0;
  bool udp_checksum = false;
  LinkLayer* link = nullptr;
  int wake_fd = -1;  // see PacketPort
};

class DpdkQueue final : public PacketPort {
 public:
  explicit DpdkQueue(const DpdkQueueConfig& config);
  ~DpdkQueue() override;
  DpdkQueue(const DpdkQueue&) = delete;
  DpdkQueue& operator=(const DpdkQueue&) = delete;

  // Bytes that the mempool must reserve in each mbuf, and the offset of datagrams in its data room.
  static size_t private_bytes();
  static size_t header_room();

  PortLimits limits() const override;
  TxPacket* Acquire() override;
  void Release(TxPacket* packet) override;
  size_t Transmit(std::span<TxPacket* const> packets) override;
  bool Flush() override;
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return config_.wake_fd; }
  const PortCounters& counters() const override { return counters_; }

 private:
  static constexpr size_t kBurst = 64;
  static constexpr size_t kReady = 256;
  static constexpr size_t kParked = 256;
  static constexpr size_t kLooped = 1024;
  struct Slot : TxPacket {
    rte_mbuf* mbuf = nullptr;
    uint16_t ip_id = 0;
  };
  struct Parked {
    Slot* slot;
    uint64_t deadline;  // in time stamp counter ticks
  };

  static Slot* SlotOf(rte_mbuf* mbuf) { return static_cast<Slot*>(rte_mbuf_to_priv(mbuf)); }
  size_t ready() const { return ready_.size() - ready_head_; }
  bool HasRoom();
  bool Place(Slot* slot);
  void Frame(Slot* slot, const MacAddress& destination);
  void LoopBack(Slot* slot);
  void Park(Slot* slot, uint64_t deadline);
  void Unpark();
  void Lose(Slot* slot);
  bool SendReady();
  void SendLinkFrames();
  bool Accept(rte_mbuf* mbuf, wire::RxDatagram& datagram);
  size_t TakeLooped(std::span<wire::RxDatagram> into);
  void AtTimes();

  const DpdkQueueConfig config_;
  NeighbourCache neighbours_;
  PortCounters counters_;
  uint16_t next_ip_id_;
  bool registered_ = false;
  uint64_t next_tick_ = 0;
  std::vector<rte_mbuf*> ready_;  // from ready_head_ on: complete frames, in order
  size_t ready_head_ = 0;
  std::vector<Parked> parked_;
  uint64_t parked_version_ = 0;  // version of the link layer at the last look at parked_
  uint64_t parked_retry_ = 0;
  std::vector<Slot*> looped_;  // from looped_head_ on: sent to an own address
  size_t looped_head_ = 0;
  std::vector<rte_mbuf*> held_;  // returned by the last Receive
};

}  // namespace rocegw::port
