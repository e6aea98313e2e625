// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/pair_port.h"

#include <algorithm>

#include "gateway/base/invariant.h"
#include "gateway/port/frame.h"
#include "gateway/wire/headers.h"

namespace rocegw::port {
namespace {

constexpr size_t kPairBurst = 64;

}  // namespace

PairPort::PairPort(const PairConfig& config, const SteeringTable& remote_steering)
    : max_datagram_(MaxDatagram(config.mtu)),
      ip_id_visible_(config.ip_id_visible),
      outside_from_(config.outside_from),
      remote_steering_(remote_steering),
      next_ip_id_(config.first_ip_id),
      pool_(config.packets_per_queue, max_datagram_) {
  borrowed_.reserve(kPairBurst);
}

PortLimits PairPort::limits() const { return {.max_datagram = max_datagram_, .burst = kPairBurst}; }

void PairPort::Reclaim() {
  for (PacketRings* rings : out_) {
    Slot* slot = nullptr;
    while (rings->returned.Pop(slot)) pool_.Put(slot);
  }
}

TxPacket* PairPort::Acquire() {
  if (pool_.available() == 0) Reclaim();
  Slot* const slot = pool_.Get();
  if (slot != nullptr) slot->outside_from = outside_from_;
  return slot;
}

void PairPort::Release(TxPacket* packet) { pool_.Put(static_cast<Slot*>(packet)); }

size_t PairPort::Transmit(std::span<TxPacket* const> packets) {
  size_t taken = 0;
  size_t sent = 0;
  size_t bytes = 0;
  for (TxPacket* packet : packets) {
    auto* slot = static_cast<Slot*>(packet);
    if (slot->length + wire::kIcrcLength > limits().MaxDatagramTo(slot->path.destination)) {
      counters_.tx_lost.Add();
      pool_.Put(slot);
      ++taken;
      continue;
    }
    const Qpn qpn = DestinationQpn({slot->data, slot->length});
    const WorkerIndex queue = remote_steering_.WorkerOf(qpn);
    // The ID advances only when the packet is taken: a packet offered again is sealed again.
    slot->ip_id = next_ip_id_;
    slot->Flatten();
    wire::SealIcrc(slot->path, slot->ip_id, slot->data, slot->length, slot->known_crc);
    if (!out_[queue]->packets.Push(static_cast<Slot*>(packet))) {
      counters_.tx_pushback.Add();
      break;
    }
    ++next_ip_id_;
    ++taken;
    ++sent;
    bytes += slot->length + wire::kIcrcLength;
  }
  counters_.tx_packets.Add(sent);
  counters_.tx_bytes.Add(bytes);
  if (taken != 0) counters_.tx_calls.Add();
  return taken;
}

size_t PairPort::Receive(std::span<wire::RxDatagram> into) {
  // Early, so that the few buffers in use are reused while they are in the cache.
  Reclaim();
  for (Borrowed& borrowed : borrowed_) {
    const bool fits = borrowed.rings->returned.Push(static_cast<Slot*>(borrowed.slot));
    (void)ROCEGW_INVARIANT(fits, "port-pair-return");
  }
  borrowed_.clear();
  const size_t wanted = std::min(into.size(), kPairBurst);
  size_t count = 0;
  for (size_t visited = 0; visited < in_.size() && count < wanted; ++visited) {
    PacketRings* rings = in_[next_in_];
    next_in_ = (next_in_ + 1) % in_.size();
    Slot* slot = nullptr;
    while (count < wanted && rings->packets.Pop(slot)) {
      wire::RxDatagram& datagram = into[count++];
      const wire::Path& path = slot->path;
      datagram.meta = {.source = path.source,
                       .destination = path.destination,
                       .source_port = path.source_port,
                       .traffic_class = path.traffic_class,
                       .hop_limit = path.hop_limit,
                       .ip_id_known = ip_id_visible_ && path.destination.IsV4(),
                       .ip_id = ip_id_visible_ ? slot->ip_id : uint16_t{0}};
      datagram.bytes = {slot->data, slot->length + wire::kIcrcLength};
      borrowed_.push_back({slot, rings});
    }
  }
  if (count != 0) {
    counters_.rx_calls.Add();
    counters_.rx_packets.Add(count);
    for (const wire::RxDatagram& datagram : into.first(count))
      counters_.rx_bytes.Add(datagram.bytes.size());
  }
  return count;
}

PairLink::PairLink(const PairConfig& config) {
  for (size_t side = 0; side < 2; ++side) {
    for (size_t queue = 0; queue < config.steering[side].worker_count(); ++queue) {
      ports_[side].emplace_back(new PairPort(config, config.steering[1 - side]));
    }
  }
  const size_t depth = config.queue_depth != 0 ? config.queue_depth : config.packets_per_queue;
  for (size_t side = 0; side < 2; ++side) {
    for (auto& sender : ports_[side]) {
      for (auto& receiver : ports_[1 - side]) {
        rings_.push_back(std::make_unique<PairPort::PacketRings>(depth, config.packets_per_queue));
        sender->out_.push_back(rings_.back().get());
        receiver->in_.push_back(rings_.back().get());
      }
    }
  }
}

}  // namespace rocegw::port
