// SPDX-License-Identifier: Apache-2.0
// Transmit buffers of a worker whose packets wait for the memory of programs, which may take for
// ever. Such packets have at most half of the port's buffers, and pools share those max-min fairly:
// one pool alone has a quarter of the port's. Belongs to one worker.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gateway/port/packet_port.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

class HeldPackets {
 public:
  static constexpr size_t kMost = port::kTransmitBuffers / 2;
  // A pool with fewer may hold a packet whatever the others hold.
  static constexpr size_t kAlways = 8;

  void Add(PoolAccounts& pool) {
    if (pool.packets_held++ == 0) ++pools_;
    ++all_;
  }
  void Remove(PoolAccounts& pool, size_t count) {
    if (count == 0) return;
    pool.packets_held -= count;
    if (pool.packets_held == 0) --pools_;
    all_ -= count;
  }
  // Returns how many more packets that have to wait the pool's sessions may send.
  size_t MayAdd(const PoolAccounts& pool) const {
    const size_t always = pool.packets_held < kAlways ? kAlways - pool.packets_held : 0;
    const size_t share = kMost / (pools_ + 1);
    if (all_ >= kMost || pool.packets_held >= share) return always;
    return std::max(always, std::min(kMost - all_, share - pool.packets_held));
  }
  size_t all() const { return all_; }

 private:
  size_t all_ = 0;
  size_t pools_ = 0;  // number of pools that hold any
};

}  // namespace rocegw::worker
