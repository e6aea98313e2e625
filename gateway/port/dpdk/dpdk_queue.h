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

#include "gateway/port/frame_endpoint.h"
#include "gateway/port/link_layer.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/ready_frames.h"

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

class DpdkQueue final : public PacketPort, private FrameSink {
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
  struct Slot : FrameSlot {
    rte_mbuf* mbuf = nullptr;
  };

  static rte_mbuf* MbufOf(FrameSlot& slot) { return static_cast<Slot&>(slot).mbuf; }
  bool HasRoom() override;
  void TakeFrame(FrameSlot& slot, size_t headers, size_t payload) override;
  void FreeSlot(FrameSlot& slot) override { rte_pktmbuf_free(MbufOf(slot)); }
  bool SendReady();
  void SendLinkFrames();
  bool Accept(rte_mbuf* mbuf, wire::RxDatagram& datagram);
  void AtTimes();

  const DpdkQueueConfig config_;
  PortCounters counters_;
  FrameEndpoint endpoint_;
  bool registered_ = false;
  uint64_t next_tick_ = 0;
  ReadyFrames<rte_mbuf*> ready_{kReady};
  std::vector<rte_mbuf*> held_;          // returned by the last Receive
  std::vector<FrameSlot*> held_looped_;  // the same, of packets to own addresses
};

}  // namespace rocegw::port
