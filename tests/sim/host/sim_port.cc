// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/host/sim_port.h"

#include <algorithm>

#include "gateway/port/frame.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/headers.h"

namespace rocegw::sim {
namespace {
constexpr size_t kBurst = 64;
}

SimPort::SimPort(Network& network, const NicConfig& nic, const CpuCost& cost, uint32_t number)
    : network_(network),
      nic_(nic),
      cost_(cost),
      number_(number),
      next_ip_id_(static_cast<uint16_t>(Mix(number))) {
  borrowed_.reserve(kBurst);
}

void SimPort::BeginTurn() {
  spent_ = cost_.turn;
  moved_ = false;
  pushed_back_ = false;
}

size_t SimPort::Waiting() {
  while (!leaving_.empty() && leaving_.front() <= network_.now()) leaving_.pop_front();
  return leaving_.size();
}

TimePoint SimPort::RoomAt() {
  const size_t waiting = Waiting();
  return waiting == 0 ? network_.now() : leaving_[waiting / 2];
}

void SimPort::Enqueue(Packet* packet) {
  // If the IP ID must be recovered, a kernel has checked the UDP checksum before, which detects
  // every single-bit error.
  const bool checksum = packet->damaged && !nic_.ip_id_visible;
  if (checksum || received_.size() >= nic_.receive_packets) {
    overflows_ += checksum ? 0 : 1;
    network_.store().Put(packet);
    return;
  }
  received_.push_back(packet);
}

port::PortLimits SimPort::limits() const {
  return {.max_datagram = port::MaxDatagram(network_.config().mtu), .burst = kBurst};
}

port::TxPacket* SimPort::Acquire() {
  if (taken_ + Waiting() >= nic_.transmit_packets) {
    pushed_back_ = true;
    return nullptr;
  }
  ++taken_;
  Packet* packet = network_.store().Get();
  packet->owner = number_;
  packet->outside_from = nic_.outside_from;
  return packet;
}

void SimPort::Release(port::TxPacket* packet) {
  --taken_;
  network_.store().Put(static_cast<Packet*>(packet));
}

size_t SimPort::Transmit(std::span<port::TxPacket* const> packets) {
  for (port::TxPacket* filled : packets) {
    auto* packet = static_cast<Packet*>(filled);
    --taken_;
    moved_ = true;
    if (packet->length + wire::kIcrcLength > limits().MaxDatagramTo(packet->path.destination)) {
      counters_.tx_lost.Add();
      network_.store().Put(packet);
      continue;
    }
    const wire::Path& path = packet->path;
    const uint16_t ip_id = next_ip_id_++;
    packet->Flatten();
    wire::SealIcrc(path, ip_id, packet->data, packet->length, packet->known_crc);
    packet->size = packet->length + wire::kIcrcLength;
    packet->number = network_.NextNumber();
    packet->meta = {.source = path.source,
                    .destination = path.destination,
                    .source_port = path.source_port,
                    .traffic_class = path.traffic_class,
                    .hop_limit = path.hop_limit,
                    .ip_id_known = path.destination.IsV4(),
                    .ip_id = path.destination.IsV4() ? ip_id : uint16_t{0}};
    spent_ += cost_.send;
    ++sent_;
    leaving_.push_back(uplink_->Send(packet, network_.now() + Nanoseconds(spent_)));
  }
  if (!packets.empty()) counters_.tx_calls.Add();
  return packets.size();
}

size_t SimPort::Receive(std::span<wire::RxDatagram> into) {
  for (Packet* packet : borrowed_) network_.store().Put(packet);
  borrowed_.clear();
  const size_t count = std::min({into.size(), kBurst, received_.size()});
  for (size_t i = 0; i < count; ++i) {
    Packet* packet = received_.front();
    received_.pop_front();
    borrowed_.push_back(packet);
    into[i] = {packet->meta, packet->bytes()};
    if (!nic_.ip_id_visible) {
      into[i].meta.ip_id_known = false;
      into[i].meta.ip_id = 0;
    }
  }
  if (count != 0) {
    moved_ = true;
    spent_ += cost_.receive * static_cast<int64_t>(count);
    counters_.rx_calls.Add();
  }
  return count;
}

}  // namespace rocegw::sim
