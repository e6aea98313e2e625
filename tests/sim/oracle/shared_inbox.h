// SPDX-License-Identifier: Apache-2.0
// Receives that several Talkers of a host share: a shared receive queue and its memory. Each
// receive completes once, whichever connection took it. A failing connection would keep some for
// ever, so it has none of them. Owned by a scenario; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tests/sim/host/host.h"
#include "tests/sim/oracle/arena.h"
#include "tests/support/qp/shared_end.h"

namespace rocegw::sim {

class SharedInbox {
 public:
  struct Config {
    uint32_t receives = 8;  // a power of two
    uint32_t max_length = 0;
    uint32_t payload_stride = 0;
  };
  static uint64_t Room(const Config& config) {
    return config.receives * Guarded(config.max_length);
  }

  // Uses the host's memory, represented by the arena, from `base` on. The queue is on the first
  // worker.
  SharedInbox(Host& host, Arena& arena, uint64_t base, const Config& config, Random random);

  testing::SharedEnd& end() { return end_; }
  // Posts all free receives, except that the program is late in `late` of 100 calls.
  void Post(uint32_t late);
  // Handles a completed receive. Returns the offset of its bytes, which the program owns now;
  // nothing if it was not posted or has completed before.
  std::optional<uint64_t> Take(const rocegw_cqe& cqe);
  const uint8_t* payload(uint32_t ring_slot) const { return end_.payload(ring_slot); }
  // Resets the slot after its contents were checked.
  void Clear(uint64_t at);
  // Returns the limit of message bytes.
  uint32_t max_length() const { return config_.max_length; }

 private:
  uint64_t At(uint32_t buffer) const { return base_ + buffer * Guarded(config_.max_length); }

  Host& host_;
  Arena& arena_;
  const uint64_t base_;
  const Config config_;
  Random random_;
  testing::SharedEnd end_;
  std::map<uint64_t, uint32_t> posted_;  // buffers, by id
  std::vector<uint32_t> free_;
  uint64_t ids_ = 0;
};

}  // namespace rocegw::sim
