// SPDX-License-Identifier: Apache-2.0
// Queue pair numbers. Bits 23 to 18 are the bucket that leads packets to the QP's worker
// (port/steering.h); bits 17 to 0 are a keyed permutation of a counter, so that numbers neither
// repeat nor tell their neighbours. 0, 1 and 0xFFFFFF are never given. A number rests before it is
// used again: packets for its former owner are still under way (IBTA 9.7.5, time-wait). Fresh
// numbers come first until many of a bucket rest; from then on the number that has rested longest
// comes back, so that the memory of the list follows the load and not the age of the gateway.
// Owner: session server, control thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/port/steering.h"
#include "gateway/session/reserve/random.h"

namespace rocegw::session {

// A permutation of 18-bit numbers, chosen by a key (Feistel network of nine-bit halves).
class QpnPermutation {
 public:
  explicit QpnPermutation(Random& random);
  uint32_t Apply(uint32_t index) const;
  uint32_t Invert(uint32_t number) const;

 private:
  static constexpr int kRounds = 6;
  std::array<uint64_t, kRounds> keys_;
};

class QpnAllocator {
 public:
  QpnAllocator(const port::SteeringTable& steering, size_t workers, Random& random,
               Duration rest = Seconds(2));

  // Numbers of a bucket that rest before the first of them is preferred to a fresh one.
  static constexpr size_t kManyResting = 4096;

  // Nothing when all numbers of that worker are in use or resting.
  std::optional<Qpn> Take(WorkerIndex worker, TimePoint now);
  void Give(Qpn qpn, TimePoint now);
  // Whether in use or resting: not given again before `until`, since a peer may believe in it.
  void RestUntil(Qpn qpn, TimePoint until, TimePoint now);

  size_t in_use() const { return in_use_; }
  size_t resting_longer() const { return longer_rest_.size(); }

 private:
  struct Resting {
    uint32_t index;
    TimePoint until;
  };
  struct Bucket {
    uint32_t next_index = 0;  // below: given at least once
    std::deque<Resting> resting;
  };

  std::optional<Qpn> TakeFrom(uint8_t bucket, TimePoint now);

  Duration rest_;
  std::vector<QpnPermutation> permutations_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<uint8_t>> buckets_of_worker_;
  std::vector<size_t> turn_;  // per worker
  std::unordered_map<Qpn, TimePoint> longer_rest_;
  size_t sweep_longer_rest_at_ = 1024;
  size_t in_use_ = 0;
};

}  // namespace rocegw::session
