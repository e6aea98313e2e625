// SPDX-License-Identifier: Apache-2.0
// Which ranges of a window are free, which were given out, and which belong to the window no more.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace rocegw::far {

class RangeMap {
 public:
  enum class Use : uint8_t { kFree, kGiven, kMoved };
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    Use use = Use::kFree;
  };

  explicit RangeMap(uint64_t bytes) : ranges_{{0, {bytes, Use::kFree}}} {}

  // Offset of the first free range of this length, which is given out; nullopt: there is none.
  // `bytes` is not 0.
  std::optional<uint64_t> Allocate(uint64_t bytes);
  // [begin, end) is not empty.
  void Set(uint64_t begin, uint64_t end, Use use);
  // The ranges that [begin, end) consists of, in ascending order.
  std::vector<Range> Get(uint64_t begin, uint64_t end) const;
  uint64_t Bytes(Use use) const;

 private:
  struct Entry {
    uint64_t end;
    Use use;
  };
  void SplitAt(uint64_t offset);
  void JoinAt(uint64_t offset);

  std::map<uint64_t, Entry> ranges_;  // by begin; neighbours have different uses
};

}  // namespace rocegw::far
