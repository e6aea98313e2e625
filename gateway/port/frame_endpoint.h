// SPDX-License-Identifier: Apache-2.0
// IP end of one queue whose port writes Ethernet frames itself (DPDK, AF_XDP): writes the headers
// of outgoing packets, keeps packets a bounded time while their neighbour is resolved (pools share
// the space for these), loops
// packets to own addresses back, and checks received frames. The device queue behind it is a
// FrameSink. Belongs to one worker.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gateway/port/link_layer.h"
#include "gateway/port/neighbour/neighbour_cache.h"
#include "gateway/port/packet_port.h"
#include "gateway/port/port_counters.h"

namespace rocegw::port {

// Packet with at least kFrameHeaderRoom bytes in front of its data.
struct FrameSlot : TxPacket {
  uint16_t ip_id = 0;
};

inline constexpr size_t kFrameHeaderRoom = kEthernetHeaderLength + kVlanTagLength + kMaxIpUdpLength;

// Device queue of a FrameEndpoint, and owner of the packets' memory.
class FrameSink {
 public:
  // Returns true if the device queue has space for one more frame; may send frames to make space.
  virtual bool HasRoom() = 0;
  // Queues a frame: `headers` bytes in front of slot.data and `payload` bytes from there on. The
  // caller has asked HasRoom.
  virtual void TakeFrame(FrameSlot& slot, size_t headers, size_t payload) = 0;
  virtual void FreeSlot(FrameSlot& slot) = 0;

 protected:
  ~FrameSink() = default;
};

struct FrameEndpointConfig {
  size_t max_datagram = 0;
  uint16_t vlan = 0;
  bool udp_checksum = false;
  LinkLayer* link = nullptr;
};

class FrameEndpoint {
 public:
  FrameEndpoint(const FrameEndpointConfig& config, FrameSink& sink, PortCounters& counters);
  FrameEndpoint(const FrameEndpoint&) = delete;
  FrameEndpoint& operator=(const FrameEndpoint&) = delete;

  // Takes the first n packets, as PacketPort::Transmit does, and returns n.
  size_t Transmit(std::span<TxPacket* const> packets);

  // Returns true if packets wait for a neighbour.
  bool waits() const { return !parked_.empty(); }
  // Queues the frames of packets whose neighbour is resolved, and drops packets that waited too
  // long.
  void Unpark();

  // Fills the front of `into` with looped packets, appends them to `held`, and returns their
  // number. The caller frees them when their bytes are no longer used.
  size_t TakeLooped(std::span<wire::RxDatagram> into, std::vector<FrameSlot*>& held);

  // Parses a received frame of the VLAN. Sets `datagram` and returns true for a packet to UDP port
  // 4791 at an own address or a group. Hands other frames to the link layer. Counts each frame.
  bool Accept(std::span<const uint8_t> frame, uint16_t vlan, wire::RxDatagram& datagram);
  // Counts a frame that is longer than a buffer.
  void RefuseOversized() { counters_.rx_malformed.Add(); }

  // Frees the packets that wait or are looped. The owner calls it while the sink exists.
  void Clear();

 private:
  static constexpr size_t kParked = 256;
  static constexpr size_t kLooped = 1024;
  using Clock = std::chrono::steady_clock;
  struct Parked {
    FrameSlot* slot;
    Clock::time_point deadline;
  };

  bool Place(FrameSlot& slot);
  bool MakeRoomToPark(PoolTag pool);
  void Frame(FrameSlot& slot, const MacAddress& destination);
  void LoopBack(FrameSlot& slot);
  void Park(FrameSlot& slot);
  void Lose(FrameSlot& slot);

  const FrameEndpointConfig config_;
  FrameSink& sink_;
  PortCounters& counters_;
  NeighbourCache neighbours_;
  uint16_t next_ip_id_;
  std::vector<Parked> parked_;  // oldest first
  uint64_t parked_news_ = 0;    // news of the link layer at the last look at parked_
  Clock::time_point parked_retry_{};
  Clock::time_point parked_rest_{};  // earliest look because of news
  std::vector<FrameSlot*> looped_;   // from looped_head_ on: sent to an own address
  size_t looped_head_ = 0;
};

}  // namespace rocegw::port
