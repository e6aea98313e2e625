// SPDX-License-Identifier: Apache-2.0
// Splitter of a pcapng file that arrives in pieces, at the ends of its blocks, so that the written
// part is always a valid file, also after an interruption. Plain value; one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rocegw::cli {

class WholeBlocks {
 public:
  // Returns all blocks that this piece completes; valid until the next call.
  std::string_view Add(std::string_view piece) {
    held_.erase(0, given_);
    held_ += piece;
    given_ = 0;
    // A block begins with type and length, in host byte order like the gateway's.
    constexpr size_t kHead = 8;
    constexpr uint32_t kEnhancedPacket = 6;
    while (held_.size() - given_ >= kHead) {
      uint32_t length = 0;
      std::memcpy(&length, held_.data() + given_ + sizeof(uint32_t), sizeof length);
      if (length < kHead || length > held_.size() - given_) break;
      uint32_t type = 0;
      std::memcpy(&type, held_.data() + given_, sizeof type);
      if (type == kEnhancedPacket) ++packets_;
      given_ += length;
    }
    return std::string_view(held_).substr(0, given_);
  }
  // Returns true if no block is incomplete.
  bool complete() const { return given_ == held_.size(); }
  // Number of packets in the returned blocks.
  uint64_t packets() const { return packets_; }

 private:
  std::string held_;
  size_t given_ = 0;
  uint64_t packets_ = 0;
};

}  // namespace rocegw::cli
