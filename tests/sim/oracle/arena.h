// SPDX-License-Identifier: Apache-2.0
// A host's memory together with its expected contents. Every expected change is made to the
// expectation as well; a byte that differs was written without permission. Ranges with unknown
// contents (a request failed while in flight) are excluded. Belongs to one scenario; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/sim/oracle/content.h"

namespace rocegw::sim {

// Returns the size of a slot for so many bytes, including guard bytes that must not change.
constexpr uint64_t Guarded(uint64_t length) { return (length + 7) / 8 * 8 + 64; }

class Arena {
 public:
  explicit Arena(std::span<uint8_t> memory) : memory_(memory), expected_(memory.size()) {
    Write(0, memory.size(), Mix(memory.size()), 0);
  }

  std::span<uint8_t> Bytes(uint64_t at, uint64_t length) { return memory_.subspan(at, length); }

  // Writes to memory as the program.
  void Write(uint64_t at, uint64_t length, uint64_t stream, uint64_t from) {
    Expect(at, length, stream, from);
    std::memcpy(memory_.data() + at, expected_.data() + at, length);
  }
  // Expects bytes that another party writes.
  void Expect(uint64_t at, uint64_t length, uint64_t stream, uint64_t from) {
    Fill(stream, from, std::span(expected_).subspan(at, length));
  }
  void ExpectWord(uint64_t at, uint64_t value) { std::memcpy(expected_.data() + at, &value, 8); }
  void WriteWord(uint64_t at, uint64_t value) {
    ExpectWord(at, value);
    std::memcpy(memory_.data() + at, &value, 8);
  }
  // Excludes a range whose contents are unknown.
  void Forget(uint64_t at, uint64_t length) { unknown_.push_back({at, length}); }

  // Returns the first unexpected byte of the range; the range's end if there is none.
  uint64_t FirstDifference(uint64_t at, uint64_t length) const {
    if (std::memcmp(memory_.data() + at, expected_.data() + at, length) == 0) return at + length;
    uint64_t i = at;
    while (memory_[i] == expected_[i]) ++i;
    return i;
  }
  // Returns the first unexpected byte of the whole memory, without excluded ranges; its size if
  // there is none.
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
