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
  struct Count {
    wire::Gid peer;
    uint32_t count = 0;
  };

  void Add(const wire::Gid& peer) {
    const auto found = Find(peer);
    if (found != counts_.end()) {
      ++found->count;
    } else {
      counts_.push_back({peer, 1});
    }
  }
  void Remove(const wire::Gid& peer) {
    const auto found = Find(peer);
    if (found == counts_.end() || --found->count != 0) return;
    *found = counts_.back();
    counts_.pop_back();
  }
  uint32_t Of(const wire::Gid& peer) const {
    const auto found = std::ranges::find(counts_, peer, &Count::peer);
    return found == counts_.end() ? 0 : found->count;
  }
  // Returns the gateway that has most; count 0: there is none.
  Count Most() const {
    const auto most = std::ranges::max_element(counts_, {}, &Count::count);
    return most == counts_.end() ? Count{} : *most;
  }
  // Returns the number of gateways that have any.
  size_t size() const { return counts_.size(); }
  void clear() { counts_.clear(); }

 private:
  std::vector<Count>::iterator Find(const wire::Gid& peer) {
    return std::ranges::find(counts_, peer, &Count::peer);
  }

  std::vector<Count> counts_;
};

}  // namespace rocegw::transport
