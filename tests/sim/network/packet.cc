// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/packet.h"

#include <cstring>

namespace rocegw::sim {
namespace {
// With a BTH only, the payload starts on a cache line.
constexpr size_t kHeadroom = 52;
}  // namespace

Packet* PacketStore::Get() {
  if (free_.empty()) {
    Block& block = blocks_.emplace_back();
    block.bytes = std::make_unique_for_overwrite<uint8_t[]>(kPerBlock * stride_);
    block.packets = std::make_unique<Packet[]>(kPerBlock);
    for (size_t i = kPerBlock; i-- > 0;) {
      block.packets[i].data = block.bytes.get() + i * stride_ + kHeadroom;
      free_.push_back(&block.packets[i]);
    }
  }
  Packet* packet = free_.back();
  free_.pop_back();
  packet->length = 0;
  packet->size = 0;
  packet->damaged = false;
  packet->outside_from = port::TxPacket::kNeverOutside;
  packet->outside.bytes = nullptr;
  packet->known_crc = {};
  packet->bundles = false;
  packet->seal = 0;
  return packet;
}

Packet* PacketStore::Copy(const Packet& packet) {
  Packet* copy = Get();
  uint8_t* const data = copy->data;
  *copy = packet;
  copy->data = data;
  std::memcpy(data, packet.data, packet.size);
  return copy;
}

}  // namespace rocegw::sim
