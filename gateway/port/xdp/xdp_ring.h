// SPDX-License-Identifier: Apache-2.0
// View of one ring of an AF_XDP socket, shared with the kernel: one producer, one consumer, indices
// that run on (Documentation/networking/af_xdp.rst). Belongs to one thread at a time.
#pragma once

#include <linux/if_xdp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rocegw::port {

template <typename Entry>
class XdpRing {
 public:
  XdpRing() = default;
  // `memory`: the ring's mapping, which the socket owns.
  XdpRing(uint8_t* memory, const xdp_ring_offset& offsets, uint32_t entries)
      : producer_(reinterpret_cast<uint32_t*>(memory + offsets.producer)),
        consumer_(reinterpret_cast<uint32_t*>(memory + offsets.consumer)),
        flags_(reinterpret_cast<uint32_t*>(memory + offsets.flags)),
        entries_(reinterpret_cast<Entry*>(memory + offsets.desc)),
        size_(entries) {}

  // For rings that this process fills.
  uint32_t Space() {
    if (size_ - (own_ - other_) == 0) other_ = Load(consumer_);
    return size_ - (own_ - other_);
  }
  void Put(const Entry& entry) { entries_[own_++ & (size_ - 1)] = entry; }
  // Sequentially consistent with needs_wakeup: the kernel sets its flag before it looks for entries
  // a last time.
  void Publish() { std::atomic_ref(*producer_).store(own_, std::memory_order_seq_cst); }
  // Returns how many published entries the kernel has not taken.
  uint32_t Untaken() {
    other_ = Load(consumer_);
    return own_ - other_;
  }
  // Returns true if the kernel takes entries only after a system call.
  bool needs_wakeup() const {
    return (std::atomic_ref(*flags_).load(std::memory_order_seq_cst) & XDP_RING_NEED_WAKEUP) != 0;
  }

  // For rings that the kernel fills.
  uint32_t Available() {
    if (own_ == other_) other_ = Load(producer_);
    return other_ - own_;
  }
  Entry Peek(uint32_t ahead) const { return entries_[(own_ + ahead) & (size_ - 1)]; }
  void Release(uint32_t count) {
    own_ += count;
    Store(consumer_, own_);
  }

 private:
  static uint32_t Load(uint32_t* index) {
    return std::atomic_ref(*index).load(std::memory_order_acquire);
  }
  static void Store(uint32_t* index, uint32_t value) {
    std::atomic_ref(*index).store(value, std::memory_order_release);
  }

  uint32_t* producer_ = nullptr;
  uint32_t* consumer_ = nullptr;
  uint32_t* flags_ = nullptr;
  Entry* entries_ = nullptr;
  uint32_t size_ = 0;
  uint32_t own_ = 0;    // this side's index; published by Publish and Release
  uint32_t other_ = 0;  // last read index of the kernel
};

}  // namespace rocegw::port
