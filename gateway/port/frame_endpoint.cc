// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/frame_endpoint.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gateway/port/frame.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::port {
namespace {

// Time for resolving a neighbour: the kernel asks three times, a second apart.
constexpr std::chrono::seconds kPatience{3};
constexpr std::chrono::milliseconds kRetryInterval{200};
// Pause between looks at the waiting packets because of news: a program that looks for many
// addresses causes news without end.
constexpr std::chrono::microseconds kRestPerParked{4};
constexpr size_t kMacsLength = 2 * sizeof(MacAddress);

}  // namespace

FrameEndpoint::FrameEndpoint(const FrameEndpointConfig& config, FrameSink& sink,
                             PortCounters& counters)
    : config_(config),
      sink_(sink),
      counters_(counters),
      neighbours_(*config.link),
      next_ip_id_(static_cast<uint16_t>(Clock::now().time_since_epoch().count())) {
  parked_.reserve(kParked);
  looped_.reserve(kLooped);
}

void FrameEndpoint::Clear() {
  for (const Parked& parked : parked_) sink_.FreeSlot(*parked.slot);
  parked_.clear();
  for (size_t i = looped_head_; i < looped_.size(); ++i) sink_.FreeSlot(*looped_[i]);
  looped_.clear();
  looped_head_ = 0;
}

void FrameEndpoint::Lose(FrameSlot& slot) {
  counters_.tx_lost.Add();
  sink_.FreeSlot(slot);
}

size_t FrameEndpoint::Transmit(std::span<TxPacket* const> packets) {
  const PortLimits limits{.max_datagram = config_.max_datagram, .burst = 0};
  for (size_t i = 0; i < packets.size(); ++i) {
    auto* slot = static_cast<FrameSlot*>(packets[i]);
    if (slot->length + wire::kIcrcLength > limits.MaxDatagramTo(slot->path.destination)) {
      Lose(*slot);
    } else if (!Place(*slot)) {
      return i;
    }
  }
  return packets.size();
}

// Queues a packet by the state of its destination. Returns false if there is no space now.
bool FrameEndpoint::Place(FrameSlot& slot) {
  MacAddress mac{};
  switch (neighbours_.Resolve(slot.path.destination, slot.pool, mac)) {
    case Reach::kNeighbour:
      // Packets that wait for this neighbour go first.
      if (!parked_.empty()) Unpark();
      if (!sink_.HasRoom()) return false;
      Frame(slot, mac);
      break;
    case Reach::kOwn:
      LoopBack(slot);
      break;
    case Reach::kUnknown:
      Park(slot);
      break;
    case Reach::kUnreachable:
      Lose(slot);
      break;
  }
  return true;
}

void FrameEndpoint::Frame(FrameSlot& slot, const MacAddress& destination) {
  const wire::Path& path = slot.path;
  const uint16_t ip_id = next_ip_id_++;
  wire::SealIcrc(path, ip_id, slot.data, slot.length, slot.known_crc);
  const size_t payload = slot.length + wire::kIcrcLength;
  const size_t ip_udp = IpUdpLength(path.destination);
  uint8_t* ip = slot.data - ip_udp;
  (void)WriteIpUdp(path, ip_id, payload, ip);
  if (config_.udp_checksum) {
    uint8_t* udp = slot.data - kUdpHeaderLength;
    const uint16_t checksum = UdpChecksum(path, {udp, kUdpHeaderLength}, {slot.data, payload});
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
  sink_.TakeFrame(slot, ethernet + ip_udp, payload);
  counters_.tx_packets.Add();
  counters_.tx_bytes.Add(payload);
}

void FrameEndpoint::LoopBack(FrameSlot& slot) {
  if (looped_.size() - looped_head_ == kLooped) {
    Lose(slot);
    return;
  }
  if (looped_.size() == kLooped) {
    looped_.erase(looped_.begin(), looped_.begin() + static_cast<ptrdiff_t>(looped_head_));
    looped_head_ = 0;
  }
  slot.ip_id = next_ip_id_++;
  wire::SealIcrc(slot.path, slot.ip_id, slot.data, slot.length, slot.known_crc);
  looped_.push_back(&slot);
}

// Makes room by losing the oldest packet of the pool that has most, if it has more than this pool
// would have. Returns false if there is no room.
bool FrameEndpoint::MakeRoomToPark(PoolTag pool) {
  if (parked_.size() < kParked) return true;
  const auto own = std::count_if(parked_.begin(), parked_.end(),
                                 [&](const Parked& one) { return one.slot->pool == pool; });
  if (own >= ptrdiff_t{kParked / 2}) return false;
  std::array<PoolTag, kParked> pools;
  std::transform(parked_.begin(), parked_.end(), pools.begin(),
                 [](const Parked& one) { return one.slot->pool; });
  std::sort(pools.begin(), pools.end());
  PoolTag largest;
  ptrdiff_t most = 0;
  for (auto begin = pools.begin(); begin != pools.end();) {
    const auto end = std::upper_bound(begin, pools.end(), *begin);
    if (end - begin > most) {
      most = end - begin;
      largest = *begin;
    }
    begin = end;
  }
  if (most <= own + 1) return false;
  const auto oldest = std::find_if(parked_.begin(), parked_.end(),
                                   [&](const Parked& one) { return one.slot->pool == largest; });
  Lose(*oldest->slot);
  parked_.erase(oldest);
  return true;
}

void FrameEndpoint::Park(FrameSlot& slot) {
  if (!MakeRoomToPark(slot.pool)) {
    Lose(slot);
    return;
  }
  parked_.push_back({&slot, Clock::now() + kPatience});
}

void FrameEndpoint::Unpark() {
  if (parked_.empty()) return;
  const uint64_t news = config_.link->news();
  const Clock::time_point now = Clock::now();
  // The retry makes the link layer ask again if its first question was lost.
  const bool look = (news != parked_news_ && now >= parked_rest_) || now >= parked_retry_;
  if (!look && now < parked_.front().deadline) return;
  if (look) {
    parked_news_ = news;
    parked_retry_ = now + kRetryInterval;
    parked_rest_ = now + kRestPerParked * parked_.size();
  }
  size_t kept = 0;
  for (size_t i = 0; i < parked_.size(); ++i) {
    const Parked parked = parked_[i];
    MacAddress mac{};
    Reach reach = Reach::kUnknown;
    if (look) reach = neighbours_.Resolve(parked.slot->path.destination, parked.slot->pool, mac);
    if (reach == Reach::kNeighbour && sink_.HasRoom()) {
      Frame(*parked.slot, mac);
    } else if (reach == Reach::kOwn) {
      LoopBack(*parked.slot);
    } else if (reach == Reach::kUnreachable || now >= parked.deadline) {
      Lose(*parked.slot);
    } else {
      parked_[kept++] = parked;
    }
  }
  parked_.resize(kept);
}

size_t FrameEndpoint::TakeLooped(std::span<wire::RxDatagram> into, std::vector<FrameSlot*>& held) {
  size_t count = 0;
  while (count < into.size() && looped_head_ < looped_.size()) {
    FrameSlot* slot = looped_[looped_head_++];
    const wire::Path& path = slot->path;
    into[count].meta = {.source = path.source,
                        .destination = path.destination,
                        .source_port = path.source_port,
                        .traffic_class = path.traffic_class,
                        .hop_limit = path.hop_limit,
                        .ip_id_known = path.destination.IsV4(),
                        .ip_id = slot->ip_id};
    into[count].bytes = {slot->data, slot->length + wire::kIcrcLength};
    held.push_back(slot);
    ++count;
  }
  if (looped_head_ == looped_.size()) {
    looped_.clear();
    looped_head_ = 0;
  }
  return count;
}

bool FrameEndpoint::Accept(std::span<const uint8_t> frame, uint16_t vlan,
                           wire::RxDatagram& datagram) {
  if (vlan != config_.vlan) {
    counters_.rx_not_roce.Add();
    return false;
  }
  uint16_t ether_type = 0;
  std::span<const uint8_t> network;
  ParsedFrame parsed;
  FrameVerdict verdict = FrameVerdict::kMalformed;
  if (ParseEthernet(frame, ether_type, network)) verdict = ParseIpUdp(ether_type, network, parsed);
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

}  // namespace rocegw::port
