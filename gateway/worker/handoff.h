// SPDX-License-Identifier: Apache-2.0
// Rings for packets that arrived at a worker other than their queue pair's: the packet is copied to
// the owner. One ring per ordered pair of workers; a worker owns its inbox, and every other worker
// produces into one ring of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "gateway/wire/datagram.h"
#include "gateway/worker/memory/flushed_memory.h"

namespace rocegw::worker {

// Producer and consumer use separate cache lines.
class HandoffRing {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Size of the largest RoCEv2 datagram: headers, 4096 bytes, pad and ICRC.
  static constexpr size_t kMaxDatagram = 4224;
  static constexpr uint32_t kSlots = 256;

  HandoffRing() : slots_(std::make_unique_for_overwrite<Slot[]>(kSlots)) {}

  // Producer: copies the datagram. Returns false if the ring is full or the datagram too long.
  bool Push(uint32_t device, const wire::RxDatagram& datagram) {
    const uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == kSlots) return false;
    if (datagram.bytes.size() > kMaxDatagram) return false;
    Slot& slot = slots_[tail % kSlots];
    slot.device = device;
    slot.meta = datagram.meta;
    slot.length = datagram.bytes.size();
    std::memcpy(slot.bytes, datagram.bytes.data(), slot.length);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Consumer: the number of waiting datagrams, and the i-th of them, which stays valid until Pop.
  uint32_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_relaxed);
  }
  wire::RxDatagram At(uint32_t i, uint32_t& device) const {
    const Slot& slot = slots_[(head_.load(std::memory_order_relaxed) + i) % kSlots];
    device = slot.device;
    return {slot.meta, {slot.bytes, slot.length}};
  }
  // Returns slots to the producer, once the memory operations that use their payloads are done.
  void Pop(uint32_t count, FlushedMemory) {
    head_.store(head_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }
  bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }

 private:
  struct Slot {
    uint32_t device = 0;
    wire::RxMeta meta;
    size_t length = 0;
    uint8_t bytes[kMaxDatagram];
  };
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<uint32_t> tail_{0};
  alignas(64) std::atomic<uint32_t> head_{0};
};

// Inbox of one worker, filled by the other workers.
struct WorkerInbox {
  explicit WorkerInbox(size_t workers) : from(workers) {}

  std::vector<HandoffRing> from;      // by sending worker; its own entry is unused
  std::atomic<bool> sleeping{false};  // set by the owner before it waits
  int wake_fd = -1;                   // eventfd of the owner
};

}  // namespace rocegw::worker
