// SPDX-License-Identifier: Apache-2.0
// Worker's queue of an AF_XDP port: receives from the sockets of its receive queues, sends through
// one socket. Packets to send lie in packet memory, so the kernel (or the driver) reads them where
// the worker wrote them. Belongs to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/port/frame_endpoint.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/ready_frames.h"
#include "gateway/port/xdp/xdp_socket.h"
#include "gateway/port/xdp/xdp_transmitter.h"

namespace rocegw::port {

// Chunks of one socket for received frames.
struct XdpReceiver {
  XdpSocket* socket = nullptr;
  uint64_t first_chunk = 0;  // address
  size_t chunks = 0;
};

struct XdpQueueConfig {
  size_t worker = 0;
  const XdpMemory* memory = nullptr;
  std::vector<XdpReceiver> receivers;  // none: receives only what other workers hand over
  XdpTransmitter* transmitter = nullptr;
  uint64_t first_packet = 0;  // address of the worker's transmit chunks
  size_t packets = 0;
  size_t chunks_per_packet = 1;
  size_t max_datagram = 0;
  LinkLayer* link = nullptr;
  int wake_fd = -1;  // see PacketPort
};

class XdpQueue final : public PacketPort, private FrameSink {
 public:
  explicit XdpQueue(const XdpQueueConfig& config);
  ~XdpQueue() override;
  XdpQueue(const XdpQueue&) = delete;
  XdpQueue& operator=(const XdpQueue&) = delete;

  // Offset of a datagram in its first chunk. The payload behind a BTH begins on a cache line.
  static constexpr size_t kDataOffset = 116;
  static_assert(kDataOffset >= kFrameHeaderRoom);

  PortLimits limits() const override;
  TxPacket* Acquire() override;
  void Release(TxPacket* packet) override { FreeSlot(*static_cast<FrameSlot*>(packet)); }
  size_t Transmit(std::span<TxPacket* const> packets) override {
    return endpoint_.Transmit(packets);
  }
  bool Flush() override;
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return config_.wake_fd; }
  const PortCounters& counters() const override { return counters_; }

 private:
  static constexpr size_t kBurst = 64;
  static constexpr size_t kReady = 256;  // frames
  struct Slot : FrameSlot {
    size_t chunks_out = 0;  // being sent
  };
  struct Held {
    XdpSocket* socket;
    uint64_t chunk;
  };

  bool HasRoom() override;
  void TakeFrame(FrameSlot& slot, size_t headers, size_t payload) override;
  void FreeSlot(FrameSlot& slot) override { free_.push_back(static_cast<Slot*>(&slot)); }
  bool SendReady();
  void Reclaim();
  void Recycle();
  size_t ReceiveFrom(const XdpReceiver& receiver, std::span<wire::RxDatagram> into, size_t count);
  std::span<const uint8_t> Assemble(XdpSocket& socket, uint32_t descriptors, size_t index);
  void CountDrops();

  const XdpQueueConfig config_;
  PortCounters counters_;
  FrameEndpoint endpoint_;
  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  ReadyFrames<xdp_desc> ready_;
  std::vector<uint64_t> sent_;           // reused by Reclaim
  std::vector<Held> held_;               // chunks of frames that the last Receive returned
  std::vector<FrameSlot*> held_looped_;  // the same, of packets to own addresses
  // Frames of several chunks, one after the other, by index in the burst.
  std::vector<uint8_t> assembled_;
  size_t next_receiver_ = 0;
  uint32_t receives_ = 0;
  uint64_t drops_ = 0;
};

}  // namespace rocegw::port
