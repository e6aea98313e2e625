// SPDX-License-Identifier: Apache-2.0
// Keys of memory regions (L_Key and R_Key are one number here): 32 unpredictable bits, unique in
// the daemon, and resting for a while after their region is gone, so that a peer which still holds
// one never meets somebody else's memory. Owner: session server, control thread.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "gateway/base/ids.h"
#include "gateway/session/random.h"

namespace rocegw::session {

class KeyGenerator {
 public:
  // Keys given back rest until this many others have been given back after them.
  static constexpr size_t kResting = size_t{1} << 16;

  explicit KeyGenerator(Random& random) : random_(random) {}

  // Never 0 or 0xFFFFFFFF, which programs use for "none".
  MemoryKey Take();
  void Give(MemoryKey key);

  size_t in_use() const { return taken_.size() - resting_.size(); }

 private:
  Random& random_;
  std::unordered_set<MemoryKey> taken_;  // in use and resting
  std::deque<MemoryKey> resting_;
};

}  // namespace rocegw::session
