// SPDX-License-Identifier: Apache-2.0
// Donor's memory of a shared block pool, and commands that change it in pieces: a READ or WRITE of
// several words is not atomic, as over a network.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/far/pool/steps.h"

namespace rocegw::far {

class FakeTable {
 public:
  explicit FakeTable(uint64_t buckets, uint64_t block_bytes = 4096)
      : shape{buckets, block_bytes}, memory_(shape.bytes()) {}

  // Carries out at most `most` bytes of the command from `done` on. Returns the new `done`.
  uint32_t RunPiece(const Command& command, uint32_t done, uint32_t most) {
    uint8_t* const there = &memory_[command.offset];
    if (command.kind == Command::Kind::kCompareSwap) {
      uint64_t found = 0;
      std::memcpy(&found, there, sizeof found);
      std::memcpy(command.local, &found, sizeof found);
      if (found == command.expected) std::memcpy(there, &command.desired, sizeof command.desired);
      return command.bytes;
    }
    const uint32_t bytes = std::min(most, command.bytes - done);
    if (command.kind == Command::Kind::kRead) {
      std::memcpy(command.local + done, there + done, bytes);
    } else {
      std::memcpy(there + done, command.local + done, bytes);
    }
    return done + bytes;
  }
  // Carries out all commands until the request has ended.
  int64_t RunAll(Steps& steps) {
    for (;;) {
      const auto commands = steps.Next();
      if (commands.empty()) return steps.result();
      for (const Command& command : commands) RunPiece(command, 0, command.bytes);
    }
  }
  Entry& EntryAt(uint64_t bucket, uint32_t way) {
    return *reinterpret_cast<Entry*>(&memory_[shape.EntryOffset(bucket, way)]);
  }
  uint8_t* BlockAt(uint64_t bucket, uint32_t way) {
    return &memory_[shape.BlockOffset(bucket, way)];
  }

  const TableShape shape;

 private:
  std::vector<uint8_t> memory_;
};

inline PoolSecret TestSecret() {
  static constexpr std::string_view kSecret = "a secret of tests";
  return PoolSecret({reinterpret_cast<const uint8_t*>(kSecret.data()), kSecret.size()});
}

inline KeyHash HashOf(const PoolSecret& secret, std::string_view key) {
  return secret.HashKey({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
}

}  // namespace rocegw::far
