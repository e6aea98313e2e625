// SPDX-License-Identifier: Apache-2.0
// Number of things that each peer gateway has here, for shares. For few gateways: each step
// compares all. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gateway/wire/gid.h"

namespace rocegw::transport {

class PeerCounts {
 public:
  void Add(const wire::Gid& peer) {
    for (Count& one : counts_) {
      if (one.peer != peer) continue;
      ++one.count;
      return;
    }
    counts_.push_back({peer, 1});
  }
  void Remove(const wire::Gid& peer) {
    for (Count& one : counts_) {
      if (one.peer != peer) continue;
      if (--one.count != 0) return;
      one = counts_.back();
      counts_.pop_back();
      return;
    }
  }
  uint32_t Of(const wire::Gid& peer) const {
    for (const Count& one : counts_)
      if (one.peer == peer) return one.count;
    return 0;
  }
  struct Count {
    wire::Gid peer;
    uint32_t count = 0;
  };
  // Returns the gateway that has most; count 0: there is none.
  Count Most() const {
    const auto most =
        std::max_element(counts_.begin(), counts_.end(),
                         [](const Count& a, const Count& b) { return a.count < b.count; });
    return most == counts_.end() ? Count{} : *most;
  }
  // Returns the number of gateways that have any.
  size_t size() const { return counts_.size(); }
  void clear() { counts_.clear(); }

 private:
  std::vector<Count> counts_;
};

}  // namespace rocegw::transport
