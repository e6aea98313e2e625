// SPDX-License-Identifier: Apache-2.0
// Keys of memory regions (L_Key and R_Key are one number here) and of memory windows: 32
// unpredictable bits, unique in the daemon, and resting for a while after their region is gone, so
// that a peer which still holds one never meets somebody else's memory. A window has all keys that
// differ from its first in the low 8 bits. Owner: session server, control thread.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "gateway/base/ids.h"
#include "gateway/session/reserve/random.h"

namespace rocegw::session {

class KeyGenerator {
 public:
  // Keys given back rest until this many others have been given back after them.
  static constexpr size_t kResting = size_t{1} << 16;

  explicit KeyGenerator(Random& random) : random_(random) {}

  // Never 0 or 0xFFFFFFFF, which programs use for "none".
  MemoryKey Take();
  void Give(MemoryKey key);
  // Any of the window's keys.
  MemoryKey TakeForWindow();
  void GiveFromWindow(MemoryKey key);

  size_t in_use() const { return taken_.size() - resting_.size(); }

 private:
  Random& random_;
  std::unordered_set<MemoryKey> taken_;  // in use and resting
  std::deque<MemoryKey> resting_;
  std::unordered_set<uint32_t> windows_;  // upper 24 bits, in use and resting
  std::deque<uint32_t> resting_windows_;
};

}  // namespace rocegw::session
