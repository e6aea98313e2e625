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
// Time for resolving a neighbour: the kernel asks three times, a second apart.
constexpr uint64_t kPatienceSeconds = 3;
constexpr uint64_t kRetriesPerSecond = 5;
static_assert(kHeaderRoom >= kEthernetHeaderLength + kVlanTagLength + kMaxIpUdpLength);
constexpr size_t kMacsLength = 2 * sizeof(MacAddress);

// Returns the VLAN of a frame; the device may have removed the tag from it.
uint16_t FrameVlan(const rte_mbuf& mbuf, std::span<const uint8_t> frame) {
  return (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 ? mbuf.vlan_tci & kVlanMask
                                                            : VlanOf(frame);
}

}  // namespace

DpdkQueue::DpdkQueue(const DpdkQueueConfig& config)
    : config_(config), neighbours_(*config.link), next_ip_id_(static_cast<uint16_t>(rte_rdtsc())) {
  ready_.reserve(kReady);
  parked_.reserve(kParked);
  looped_.reserve(kLooped);
  held_.reserve(2 * kBurst);
}

DpdkQueue::~DpdkQueue() {
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_.size()));
  rte_pktmbuf_free_bulk(ready_.data() + ready_head_, static_cast<unsigned>(ready()));
  for (const Parked& parked : parked_) rte_pktmbuf_free(parked.slot->mbuf);
  for (size_t i = looped_head_; i < looped_.size(); ++i) rte_pktmbuf_free(looped_[i]->mbuf);
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

void DpdkQueue::Lose(Slot* slot) {
  counters_.tx_lost.Add();
  rte_pktmbuf_free(slot->mbuf);
}

size_t DpdkQueue::Transmit(std::span<TxPacket* const> packets) {
  for (size_t i = 0; i < packets.size(); ++i) {
    auto* slot = static_cast<Slot*>(packets[i]);
    if (slot->length + wire::kIcrcLength > limits().MaxDatagramTo(slot->path.destination)) {
      Lose(slot);
    } else if (!Place(slot)) {
      return i;
    }
  }
  return packets.size();
}

// Returns true if ready_ has space for one more frame; sends its frames if it is full.
bool DpdkQueue::HasRoom() {
  if (ready_.size() < kReady) return true;
  if (ready() == kReady) (void)SendReady();
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(ready_head_));
  ready_head_ = 0;
  return ready_.size() < kReady;
}

// Queues a packet by the state of its destination. Returns false if there is no space now.
bool DpdkQueue::Place(Slot* slot) {
  MacAddress mac{};
  switch (neighbours_.Resolve(slot->path.destination, mac)) {
    case Reach::kNeighbour:
      // Packets that wait for this neighbour go first.
      if (!parked_.empty()) Unpark();
      if (!HasRoom()) return false;
      Frame(slot, mac);
      break;
    case Reach::kOwn:
      LoopBack(slot);
      break;
    case Reach::kUnknown:
      Park(slot, rte_rdtsc() + kPatienceSeconds * rte_get_tsc_hz());
      break;
    case Reach::kUnreachable:
      Lose(slot);
      break;
  }
  return true;
}

void DpdkQueue::Frame(Slot* slot, const MacAddress& destination) {
  const wire::Path& path = slot->path;
  const uint16_t ip_id = next_ip_id_++;
  wire::SealIcrc(path, ip_id, slot->data, slot->length, slot->known_crc);
  const size_t payload = slot->length + wire::kIcrcLength;
  const size_t ip_udp = IpUdpLength(path.destination);
  uint8_t* ip = slot->data - ip_udp;
  (void)WriteIpUdp(path, ip_id, payload, ip);
  if (config_.udp_checksum) {
    uint8_t* udp = slot->data - kUdpHeaderLength;
    const uint16_t checksum = UdpChecksum(path, {udp, kUdpHeaderLength}, {slot->data, payload});
    udp[6] = static_cast<uint8_t>(checksum >> 8);
    udp[7] = static_cast<uint8_t>(checksum);
  }
  const size_t ethernet = EthernetLength(config_.vlan);
  uint8_t* frame = ip - ethernet;
  WriteEthernet(destination, config_.link->mac(),
                path.destination.IsV4() ? kEtherTypeIpv4 : kEtherTypeIpv6, frame);
  if (config_.vlan != 0) {
    std::memmove(ip - 2, frame + kMacsLength, 2);
    WriteVlanTag(config_.vlan, frame + kMacsLength);
  }
  rte_mbuf* mbuf = slot->mbuf;
  const size_t headers = ethernet + ip_udp;
  mbuf->data_off = static_cast<uint16_t>(kHeaderRoom - headers);
  mbuf->data_len = static_cast<uint16_t>(headers + payload);
  mbuf->pkt_len = mbuf->data_len;
  ready_.push_back(mbuf);
  counters_.tx_packets.Add();
  counters_.tx_bytes.Add(payload);
}

void DpdkQueue::LoopBack(Slot* slot) {
  if (looped_.size() - looped_head_ == kLooped) {
    Lose(slot);
    return;
  }
  if (looped_.size() == kLooped) {
    looped_.erase(looped_.begin(), looped_.begin() + static_cast<ptrdiff_t>(looped_head_));
    looped_head_ = 0;
  }
  slot->ip_id = next_ip_id_++;
  wire::SealIcrc(slot->path, slot->ip_id, slot->data, slot->length, slot->known_crc);
  looped_.push_back(slot);
}

void DpdkQueue::Park(Slot* slot, uint64_t deadline) {
  if (parked_.size() == kParked) {
    Lose(slot);
    return;
  }
  parked_.push_back({slot, deadline});
}

// Sends packets whose neighbour is resolved, and drops those that waited too long.
void DpdkQueue::Unpark() {
  const uint64_t version = config_.link->version();
  const uint64_t now = rte_rdtsc();
  // The retry makes the link layer ask again if its first question was lost.
  const bool look = version != parked_version_ || now >= parked_retry_;
  parked_version_ = version;
  if (look) parked_retry_ = now + rte_get_tsc_hz() / kRetriesPerSecond;
  size_t kept = 0;
  for (size_t i = 0; i < parked_.size(); ++i) {
    const Parked parked = parked_[i];
    MacAddress mac{};
    Reach reach = Reach::kUnknown;
    if (look) reach = neighbours_.Resolve(parked.slot->path.destination, mac);
    if (reach == Reach::kNeighbour && HasRoom()) {
      Frame(parked.slot, mac);
    } else if (reach == Reach::kOwn) {
      LoopBack(parked.slot);
    } else if (reach == Reach::kUnreachable || now >= parked.deadline) {
      Lose(parked.slot);
    } else {
      parked_[kept++] = parked;
    }
  }
  parked_.resize(kept);
}

bool DpdkQueue::SendReady() {
  while (ready() != 0) {
    const auto wanted = static_cast<uint16_t>(std::min(ready(), kBurst));
    uint16_t sent = 0;
    if (config_.transmit_lock != nullptr) {
      const std::lock_guard lock(*config_.transmit_lock);
      sent = rte_eth_tx_burst(config_.device, config_.transmit_queue, &ready_[ready_head_], wanted);
    } else {
      sent = rte_eth_tx_burst(config_.device, config_.transmit_queue, &ready_[ready_head_], wanted);
    }
    ready_head_ += sent;
    if (sent != 0) counters_.tx_calls.Add();
    if (sent < wanted) {
      counters_.tx_pushback.Add();
      return false;
    }
  }
  ready_.clear();
  ready_head_ = 0;
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
    ready_.push_back(mbuf);
  }
  (void)SendReady();
}

bool DpdkQueue::Flush() {
  if (!parked_.empty()) Unpark();
  if (config_.link->has_frames()) SendLinkFrames();
  return SendReady() && parked_.empty();
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

size_t DpdkQueue::TakeLooped(std::span<wire::RxDatagram> into) {
  size_t count = 0;
  while (count < into.size() && looped_head_ < looped_.size()) {
    const Slot* slot = looped_[looped_head_++];
    const wire::Path& path = slot->path;
    into[count].meta = {.source = path.source,
                        .destination = path.destination,
                        .source_port = path.source_port,
                        .traffic_class = path.traffic_class,
                        .hop_limit = path.hop_limit,
                        .ip_id_known = path.destination.IsV4(),
                        .ip_id = slot->ip_id};
    into[count].bytes = {slot->data, slot->length + wire::kIcrcLength};
    held_.push_back(slot->mbuf);
    ++count;
  }
  if (looped_head_ == looped_.size()) {
    looped_.clear();
    looped_head_ = 0;
  }
  return count;
}

bool DpdkQueue::Accept(rte_mbuf* mbuf, wire::RxDatagram& datagram) {
  const std::span<const uint8_t> frame(rte_pktmbuf_mtod(mbuf, const uint8_t*), mbuf->data_len);
  if (FrameVlan(*mbuf, frame) != config_.vlan) {
    counters_.rx_not_roce.Add();
    return false;
  }
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  ParsedFrame parsed;
  FrameVerdict verdict = FrameVerdict::kMalformed;
  // A buffer holds any frame of the MTU in one piece; more segments mean a larger frame.
  if (mbuf->nb_segs == 1 && ParseEthernet(frame, ether_type, network)) {
    verdict = ParseIpUdp(ether_type, network, parsed);
  }
  if (verdict == FrameVerdict::kMalformed) {
    counters_.rx_malformed.Add();
    return false;
  }
  if (verdict == FrameVerdict::kOther) config_.link->HandleFrame(frame);
  // The device receives all groups; the worker knows the joined ones.
  const wire::Gid& destination = parsed.meta.destination;
  const bool ours = destination.IsMulticast() || neighbours_.IsOwn(destination);
  if (verdict == FrameVerdict::kOther || !ours) {
    counters_.rx_not_roce.Add();
    return false;
  }
  datagram = {parsed.meta, parsed.payload};
  counters_.rx_packets.Add();
  counters_.rx_bytes.Add(parsed.payload.size());
  return true;
}

size_t DpdkQueue::Receive(std::span<wire::RxDatagram> into) {
  AtTimes();
  rte_pktmbuf_free_bulk(held_.data(), static_cast<unsigned>(held_.size()));
  held_.clear();
  const size_t wanted = std::min(into.size(), kBurst);
  size_t count = TakeLooped(into.first(wanted));
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
