// SPDX-License-Identifier: Apache-2.0
// Keys of memory regions (L_Key and R_Key are equal) and memory windows: 32 unpredictable bits,
// unique in the daemon. A freed key rests for a while, so that a peer that still has it does not
// reach another region. A window owns all keys that differ from its first only in the low 8 bits.
// Owner: session server, control thread.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "gateway/base/ids.h"
#include "gateway/session/reserve/random.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

class KeyGenerator {
 public:
  // Number of later freed keys after which a freed key may be reused.
  static constexpr size_t kResting = size_t{1} << 16;

  explicit KeyGenerator(Random& random) : random_(random) {}

  // Returns a key, never 0 or 0xFFFFFFFF, which programs use for "none".
  MemoryKey Take();
  void Give(MemoryKey key);
  // Frees a window by any of its keys.
  MemoryKey TakeForWindow();
  void GiveFromWindow(MemoryKey key);

  // Writes the keys that rest, or reads them into a generator that has given none. The reader then
  // adopts the keys in use.
  void HandOver(hand_over::StateStream& state);
  // Returns false if the key is in use.
  bool Adopt(MemoryKey key) { return taken_.insert(key).second; }
  bool AdoptWindow(MemoryKey key);

  size_t in_use() const { return taken_.size() - resting_.size(); }

 private:
  Random& random_;
  std::unordered_set<MemoryKey> taken_;  // in use and resting
  std::deque<MemoryKey> resting_;
  std::unordered_set<uint32_t> windows_;  // upper 24 bits, in use and resting
  std::deque<uint32_t> resting_windows_;
};

}  // namespace rocegw::session
