// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/dpdk/dpdk_queue.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "gateway/port/dpdk/dpdk_environment.h"
#include "gateway/port/frame.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::port {
namespace {

constexpr size_t kHeaderRoom = RTE_PKTMBUF_HEADROOM;
static_assert(kHeaderRoom >= kFrameHeaderRoom);
constexpr size_t kMacsLength = 2 * sizeof(MacAddress);

// Returns the VLAN of a frame; the device may have removed the tag from it.
uint16_t FrameVlan(const rte_mbuf& mbuf, std::span<const uint8_t> frame) {
  return (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ? mbuf.vlan_tci & kVlanMask
                                                            : VlanOf(frame);
}

}  // namespace

DpdkQueue::DpdkQueue(const DpdkQueueConfig& config)
    : config_(config),
      endpoint_({.max_datagram = config.max_datagram,
                 .vlan = config.vlan,
                 .udp_checksum = config.udp_checksum,
                 .link = config.link},
                *this, counters_) {
  held_.reserve(kBurst);
  held_looped_.reserve(kBurst);
}

DpdkQueue::~DpdkQueue() {
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_.size()));
  for (FrameSlot* slot : held_looped_) FreeSlot(*slot);
  rte_pktmbuf_free_bulk(ready_.frames().data(), static_cast<unsigned>(ready_.size()));
  endpoint_.Clear();
}

size_t DpdkQueue::private_bytes() { return RTE_ALIGN_CEIL(sizeof(Slot), RTE_CACHE_LINE_SIZE); }
size_t DpdkQueue::header_room() { return kHeaderRoom; }

PortLimits DpdkQueue::limits() const {
  return {.max_datagram = config_.max_datagram, .burst = kBurst};
}

TxPacket* DpdkQueue::Acquire() {
  rte_mbuf* mbuf = rte_pktmbuf_alloc(config_.transmit_pool);
  if (mbuf == nullptr) return nullptr;
  auto* slot = new (rte_mbuf_to_priv(mbuf)) Slot;
  slot->mbuf = mbuf;
  slot->data = rte_pktmbuf_mtod(mbuf, uint8_t*);
  return slot;
}

void DpdkQueue::Release(TxPacket* packet) { rte_pktmbuf_free(static_cast<Slot*>(packet)->mbuf); }

size_t DpdkQueue::Transmit(std::span<TxPacket* const> packets) {
  return endpoint_.Transmit(packets);
}

bool DpdkQueue::HasRoom() {
  return ready_.MakeRoom(1, [this] { (void)SendReady(); });
}

void DpdkQueue::TakeFrame(FrameSlot& slot, size_t headers, size_t payload) {
  rte_mbuf* mbuf = MbufOf(slot);
  mbuf->data_off = static_cast<uint16_t>(kHeaderRoom - headers);
  mbuf->data_len = static_cast<uint16_t>(headers + payload);
  mbuf->pkt_len = mbuf->data_len;
  ready_.Add(mbuf);
}

bool DpdkQueue::SendReady() {
  while (!ready_.empty()) {
    const std::span<rte_mbuf*> frames = ready_.frames();
    const auto wanted = static_cast<uint16_t>(std::min(frames.size(), kBurst));
    uint16_t sent = 0;
    if (config_.transmit_lock != nullptr) {
      const std::lock_guard lock(*config_.transmit_lock);
      sent = rte_eth_tx_burst(config_.device, config_.transmit_queue, frames.data(), wanted);
    } else {
      sent = rte_eth_tx_burst(config_.device, config_.transmit_queue, frames.data(), wanted);
    }
    ready_.Sent(sent);
    if (sent != 0) counters_.tx_calls.Add();
    if (sent < wanted) {
      counters_.tx_pushback.Add();
      return false;
    }
  }
  return true;
}

// Queues the link layer's requests and answers behind the ready frames.
void DpdkQueue::SendLinkFrames() {
  std::array<uint8_t, LinkLayer::kMaxFrame> frame;
  while (config_.link->has_frames() && HasRoom()) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(config_.transmit_pool);
    if (mbuf == nullptr) return;
    const size_t length = config_.link->TakeFrame(frame);
    if (length == 0) {
      rte_pktmbuf_free(mbuf);
      return;
    }
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(length)), frame.data(), length);
    if (config_.vlan != 0) {
      char* tagged = rte_pktmbuf_prepend(mbuf, kVlanTagLength);
      std::memmove(tagged, tagged + kVlanTagLength, kMacsLength);
      WriteVlanTag(config_.vlan, reinterpret_cast<uint8_t*>(tagged) + kMacsLength);
    }
    ready_.Add(mbuf);
  }
  (void)SendReady();
}

bool DpdkQueue::Flush() {
  if (endpoint_.waits()) endpoint_.Unpark();
  if (config_.link->has_frames()) SendLinkFrames();
  return SendReady() && !endpoint_.waits();
}

void DpdkQueue::AtTimes() {
  if (!registered_) {
    RegisterDpdkThread();
    registered_ = true;
  }
  const uint64_t now = rte_rdtsc();
  if (now >= next_tick_) {
    next_tick_ = now + rte_get_tsc_hz();
    config_.link->Tick();
  }
}

bool DpdkQueue::Accept(rte_mbuf* mbuf, wire::RxDatagram& datagram) {
  // A buffer holds any frame of the MTU in one piece; more segments mean a larger frame.
  if (mbuf->nb_segs != 1) {
    endpoint_.RefuseOversized();
    return false;
  }
  const std::span<const uint8_t> frame(rte_pktmbuf_mtod(mbuf, const uint8_t*), mbuf->data_len);
  return endpoint_.Accept(frame, FrameVlan(*mbuf, frame), datagram);
}

size_t DpdkQueue::Receive(std::span<wire::RxDatagram> into) {
  AtTimes();
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_.size()));
  held_.clear();
  for (FrameSlot* slot : held_looped_) FreeSlot(*slot);
  held_looped_.clear();
  const size_t wanted = std::min(into.size(), kBurst);
  size_t count = endpoint_.TakeLooped(into.first(wanted), held_looped_);
  if (config_.receive_queue >= 0 && count < wanted) {
    std::array<rte_mbuf*, kBurst> burst;
    const uint16_t received =
        rte_eth_rx_burst(config_.device, static_cast<uint16_t>(config_.receive_queue), burst.data(),
                         static_cast<uint16_t>(wanted - count));
    for (uint16_t i = 0; i < received; ++i) {
      if (Accept(burst[i], into[count])) ++count;
      held_.push_back(burst[i]);
    }
    if (received != 0) counters_.rx_calls.Add();
  }
  if (config_.link->has_frames()) SendLinkFrames();
  return count;
}

}  // namespace rocegw::port
