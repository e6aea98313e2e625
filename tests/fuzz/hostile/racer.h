// SPDX-License-Identifier: Apache-2.0
// Thread of a hostile program that changes descriptors while a worker reads them: what the worker
// has checked is no longer what is there.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace rocegw::testing {

class Racer {
 public:
  // Changes numbers of these slots of descriptors until its destruction, as fast as it can: to
  // random ones, and to those at the same place of another slot. The slots outlive it, and the
  // caller writes none of them meanwhile.
  Racer(std::vector<std::span<uint8_t>> slots, uint64_t seed);
  ~Racer();
  Racer(const Racer&) = delete;
  Racer& operator=(const Racer&) = delete;

  // Returns the number of changes so far.
  uint64_t changes() const { return changes_.load(std::memory_order_relaxed); }

 private:
  void Run(uint64_t seed);

  const std::vector<std::span<uint8_t>> slots_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> changes_{0};
  std::thread thread_;
};

}  // namespace rocegw::testing
