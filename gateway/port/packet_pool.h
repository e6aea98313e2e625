// SPDX-License-Identifier: Apache-2.0
// Packets of one transmit queue: fixed in number, allocated once, handed out last-in first-out so
// that buffers in use stay in the cache. Slot is TxPacket with the port's own fields. Belongs to
// one worker; no locks, no allocation after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "gateway/port/packet_port.h"

namespace rocegw::port {

template <typename Slot>
class PacketPool {
 public:
  PacketPool(size_t packets, size_t datagram_bytes)
      : slots_(packets), free_(), bytes_(Allocate(packets, Stride(datagram_bytes))) {
    free_.reserve(packets);
    for (size_t i = packets; i-- > 0;) {
      slots_[i].data = bytes_.get() + i * Stride(datagram_bytes) + kHeadroom;
      free_.push_back(&slots_[i]);
    }
  }

  // Returns nullptr if the pool is empty.
  Slot* Get() {
    if (free_.empty()) return nullptr;
    Slot* slot = free_.back();
    free_.pop_back();
    slot->Reset();
    return slot;
  }
  void Put(Slot* slot) { free_.push_back(slot); }

  size_t size() const { return slots_.size(); }
  size_t available() const { return free_.size(); }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete[](p, kAlignment); }
  };
  // Behind a BTH alone, as in most packets of a long message, the payload begins on a cache line:
  // the copy is some percent faster.
  static constexpr size_t kHeadroom = 52;
  // Adds a cache line: buffers at multiples of 4096 would compete for the same cache
  // sets.
  static size_t Stride(size_t bytes) { return (bytes + kHeadroom + 63) / 64 * 64 + 64; }
  static std::unique_ptr<uint8_t[], Free> Allocate(size_t packets, size_t stride) {
    auto* bytes = static_cast<uint8_t*>(::operator new[](packets* stride, kAlignment));
    return std::unique_ptr<uint8_t[], Free>(bytes);
  }

  std::vector<Slot> slots_;
  std::vector<Slot*> free_;
  std::unique_ptr<uint8_t[], Free> bytes_;
};

}  // namespace rocegw::port
