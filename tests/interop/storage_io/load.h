// SPDX-License-Identifier: Apache-2.0
// The initiator's requests: which block each slot reads or writes next, what has come back, and
// the figures. The transport carries them. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/interop/storage_io/messages.h"
#include "tests/interop/storage_io/options.h"

namespace rocegw::storage_io {

class Load {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Load(const Options& options);

  uint32_t depth() const { return options_.depth; }
  uint32_t block_bytes() const { return options_.block_bytes; }
  // Memory of the slots' blocks, one behind the other.
  std::vector<uint8_t>& memory() { return memory_; }
  uint8_t* BlockOf(uint32_t slot) { return &memory_[size_t{slot} * options_.block_bytes]; }

  // Begins the next request of a slot. The block of a write is filled in.
  Command Begin(uint32_t slot);
  // Returns the bytes that follow the response of a slot where data travels with it.
  uint32_t BytesToCome(uint32_t slot) const {
    return slots_[slot].command.operation == Operation::kRead ? options_.block_bytes : 0;
  }
  // Takes the answer of a slot and compares what was read.
  void End(uint32_t slot, bool failed);
  // Counts a request that no answer will come for.
  void Abandon() { ++abandoned_; }

  uint64_t done() const { return done_; }
  bool over() const { return Clock::now() >= end_; }
  // Prints one line of figures. Returns false if a block was wrong.
  bool Report() const;

 private:
  struct Slot {
    Command command{};
    Clock::time_point begun;
  };

  const Options options_;
  const Clock::time_point start_ = Clock::now();
  const Clock::time_point end_;
  std::mt19937_64 random_{1};
  std::vector<uint8_t> memory_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> latencies_us_;
  uint64_t done_ = 0;
  uint64_t wrong_ = 0;
  uint64_t abandoned_ = 0;
};

}  // namespace rocegw::storage_io
