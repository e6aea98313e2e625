// SPDX-License-Identifier: Apache-2.0
// A host's memory beside what it must hold. Whoever expects a change changes the expectation; a
// byte that differs was written by nobody who may. Ranges about which nothing can be known (a
// request failed when it was under way) are let out. Belongs to one scenario; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/sim/oracle/content.h"

namespace rocegw::sim {

// A slot for so many bytes, with some behind them that nobody may touch.
constexpr uint64_t Guarded(uint64_t length) { return (length + 7) / 8 * 8 + 64; }

class Arena {
 public:
  explicit Arena(std::span<uint8_t> memory) : memory_(memory), expected_(memory.size()) {
    Write(0, memory.size(), Mix(memory.size()), 0);
  }

  std::span<uint8_t> Bytes(uint64_t at, uint64_t length) { return memory_.subspan(at, length); }

  // The program writes there itself.
  void Write(uint64_t at, uint64_t length, uint64_t stream, uint64_t from) {
    Expect(at, length, stream, from);
    std::memcpy(memory_.data() + at, expected_.data() + at, length);
  }
  // Somebody else has written there.
  void Expect(uint64_t at, uint64_t length, uint64_t stream, uint64_t from) {
    Fill(stream, from, std::span(expected_).subspan(at, length));
  }
  void ExpectWord(uint64_t at, uint64_t value) { std::memcpy(expected_.data() + at, &value, 8); }
  void WriteWord(uint64_t at, uint64_t value) {
    ExpectWord(at, value);
    std::memcpy(memory_.data() + at, &value, 8);
  }
  // Nothing is known of it any more.
  void Forget(uint64_t at, uint64_t length) { unknown_.push_back({at, length}); }

  // The first byte of the range that is not as expected; its end when all are.
  uint64_t FirstDifference(uint64_t at, uint64_t length) const {
    if (std::memcmp(memory_.data() + at, expected_.data() + at, length) == 0) return at + length;
    uint64_t i = at;
    while (memory_[i] == expected_[i]) ++i;
    return i;
  }
  // Of the whole memory, without what is not known; its size when all are as expected.
  uint64_t FirstDifference() {
    for (const Range& range : unknown_) {
      std::memcpy(expected_.data() + range.at, memory_.data() + range.at, range.length);
    }
    return FirstDifference(0, memory_.size());
  }

 private:
  struct Range {
    uint64_t at;
    uint64_t length;
  };
  std::span<uint8_t> memory_;
  std::vector<uint8_t> expected_;
  std::vector<Range> unknown_;
};

}  // namespace rocegw::sim
