// SPDX-License-Identifier: Apache-2.0
// Bounded queue of received packets of any length, in order of arrival. The packets are copied: the
// port uses its memory again. A queue pair of plain RoCEv2 gets its datagram as it came; a frame of
// a channel is kept without its datagram, because its channel has taken and acknowledged it
// already. Belongs to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/wire/datagram.h"

namespace rocegw::worker {

struct WaitingPacket {
  uint32_t device = 0;
  Qpn channel = kInvalidQpn;  // number of the frame's channel; kInvalidQpn: a datagram
  uint32_t epoch = 0;         // epoch of that channel
  wire::RxMeta meta;          // set for a datagram
  std::span<const uint8_t> bytes;
};

class WaitingPackets {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;

  // Returns true if a packet with so many bytes fits.
  bool HasRoom(size_t length) const {
    const size_t need = CostOf(length);
    return need + SkippedBefore(need) <= kBytes - used();
  }
  // Copies a packet. Returns false if it does not fit.
  bool Push(const WaitingPacket& packet) {
    if (!HasRoom(packet.bytes.size())) return false;
    const size_t need = CostOf(packet.bytes.size());
    if (const size_t skipped = SkippedBefore(need); skipped != 0) {
      Write(tail_, Header{.length = kSkip});
      tail_ += skipped;
    }
    Write(tail_, {static_cast<uint32_t>(packet.bytes.size()), packet.device, packet.channel,
                  packet.epoch, packet.meta});
    if (!packet.bytes.empty())
      std::memcpy(At(tail_) + sizeof(Header), packet.bytes.data(), packet.bytes.size());
    tail_ += need;
    ++count_;
    return true;
  }

  bool empty() const { return count_ == 0; }
  uint32_t size() const { return count_; }
  // Returns the bytes that the packets and what was skipped between them take.
  size_t used() const { return static_cast<size_t>(tail_ - head_); }
  // Returns the position of the oldest packet.
  uint64_t begin() const { return head_; }
  // Returns the packet at a position, valid until PopBefore, and moves the position to the next
  // one. There must be one.
  WaitingPacket Next(uint64_t& at) const {
    Header header = Read(at);
    if (header.length == kSkip) {
      at += kBytes - at % kBytes;
      header = Read(at);
    }
    const uint8_t* const bytes = At(at) + sizeof(Header);
    at += CostOf(header.length);
    return {header.device, header.channel, header.epoch, header.meta, {bytes, header.length}};
  }
  // Removes the `count` packets before a position.
  void PopBefore(uint64_t at, uint32_t count) {
    head_ = at;
    count_ -= count;
    if (count_ == 0) head_ = tail_ = 0;
  }

 private:
  struct Header {
    uint32_t length = 0;
    uint32_t device = 0;
    Qpn channel;
    uint32_t epoch = 0;
    wire::RxMeta meta;
  };
  static constexpr size_t kUnit = 64;
  // Length in the header of what is skipped at the end of the memory.
  static constexpr uint32_t kSkip = UINT32_MAX;
  static_assert(sizeof(Header) <= kUnit && kBytes % kUnit == 0);

  static constexpr size_t CostOf(size_t length) {
    return (sizeof(Header) + length + kUnit - 1) / kUnit * kUnit;
  }
  // Returns the bytes at the end of the memory that are skipped so that a packet is in one piece.
  size_t SkippedBefore(size_t need) const {
    const size_t left = kBytes - tail_ % kBytes;
    return need > left ? left : 0;
  }
  uint8_t* At(uint64_t position) const { return bytes_.get() + position % kBytes; }
  void Write(uint64_t position, const Header& header) {
    std::memcpy(At(position), &header, sizeof header);
  }
  Header Read(uint64_t position) const {
    Header header;
    std::memcpy(&header, At(position), sizeof header);
    return header;
  }

  std::unique_ptr<uint8_t[]> bytes_ = std::make_unique_for_overwrite<uint8_t[]>(kBytes);
  uint64_t head_ = 0;  // positions grow; memory is used again every kBytes
  uint64_t tail_ = 0;
  uint32_t count_ = 0;
};

}  // namespace rocegw::worker
