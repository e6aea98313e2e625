// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/hostile/racer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tests/support/random.h"

namespace rocegw::testing {
namespace {

template <typename Number>
void Change(std::span<uint8_t> slot, std::span<uint8_t> other, Random& random) {
  const size_t places = std::min(slot.size(), other.size()) / sizeof(Number);
  if (places == 0) return;
  const size_t at = random.Below(places) * sizeof(Number);
  auto* const to = reinterpret_cast<Number*>(slot.data() + at);
  const auto* const from = reinterpret_cast<const Number*>(other.data() + at);
  const Number value =
      random.Coin() ? __atomic_load_n(from, __ATOMIC_RELAXED) : static_cast<Number>(random.Bits());
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

}  // namespace

Racer::Racer(std::vector<std::span<uint8_t>> slots, uint64_t seed) : slots_(std::move(slots)) {
  if (!slots_.empty()) thread_ = std::thread([this, seed] { Run(seed); });
}

Racer::~Racer() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void Racer::Run(uint64_t seed) {
  Random random(seed);
  while (!stop_.load(std::memory_order_relaxed)) {
    const std::span<uint8_t> slot = slots_[random.Below(slots_.size())];
    const std::span<uint8_t> other = slots_[random.Below(slots_.size())];
    switch (random.Below(4)) {
      case 0:
        Change<uint8_t>(slot, other, random);
        break;
      case 1:
        Change<uint16_t>(slot, other, random);
        break;
      case 2:
        Change<uint32_t>(slot, other, random);
        break;
      default:
        Change<uint64_t>(slot, other, random);
    }
    changes_.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace rocegw::testing
