// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/reserve/key_generator.h"

#include "gateway/verbs/memory_window.h"

namespace rocegw::session {

using verbs::MemoryWindow;

MemoryKey KeyGenerator::Take() {
  // All limits allow far fewer than 2^32 regions, so this ends after a try or two.
  while (true) {
    const MemoryKey key{random_.Next()};
    if (key.value == 0 || key.value == 0xFFFFFFFF) continue;
    if (windows_.contains(MemoryWindow::NameOf(key))) continue;
    if (taken_.insert(key).second) return key;
  }
}

void KeyGenerator::Give(MemoryKey key) {
  resting_.push_back(key);
  if (resting_.size() <= kResting) return;
  taken_.erase(resting_.front());
  resting_.pop_front();
}

MemoryKey KeyGenerator::TakeForWindow() {
  while (true) {
    const MemoryKey key{random_.Next()};
    const uint32_t name = MemoryWindow::NameOf(key);
    if (name == 0 || name == 0xFFFFFF || windows_.contains(name)) continue;
    bool free = true;
    for (uint32_t tag = 0; tag <= 0xFF; ++tag) free &= !taken_.contains({name << 8 | tag});
    if (!free) continue;
    windows_.insert(name);
    return key;
  }
}

bool KeyGenerator::AdoptWindow(MemoryKey key) {
  return windows_.insert(MemoryWindow::NameOf(key)).second;
}

void KeyGenerator::GiveFromWindow(MemoryKey key) {
  resting_windows_.push_back(MemoryWindow::NameOf(key));
  if (resting_windows_.size() <= kResting) return;
  windows_.erase(resting_windows_.front());
  resting_windows_.pop_front();
}

}  // namespace rocegw::session
