// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/key_generator.h"

namespace rocegw::session {

MemoryKey KeyGenerator::Take() {
  // Far fewer than 2^32 regions fit any limit, so this ends after a try or two.
  while (true) {
    const MemoryKey key{random_.Next()};
    if (key.value == 0 || key.value == 0xFFFFFFFF) continue;
    if (taken_.insert(key).second) return key;
  }
}

void KeyGenerator::Give(MemoryKey key) {
  resting_.push_back(key);
  if (resting_.size() <= kResting) return;
  taken_.erase(resting_.front());
  resting_.pop_front();
}

}  // namespace rocegw::session
