// SPDX-License-Identifier: Apache-2.0
// Allocator of QPNs. Bits 23 to 18 are the bucket that leads packets to the QP's worker
// (port/steering.h); bits 17 to 0 are a keyed permutation of a counter, so that numbers do not
// repeat and do not reveal their neighbours. 0, 1 and 0xFFFFFF are never used. A freed number rests
// before it is reused, since packets for its former owner may still arrive (IBTA 9.7.5, time-wait).
// New numbers are preferred until many of a bucket rest; then the longest-resting number is reused,
// so that the list's memory follows the load and not the age of the gateway. Owner: session server,
// control thread.
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

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::session {

// Keyed permutation of 18-bit numbers (Feistel network of nine-bit halves).
class QpnPermutation {
 public:
  explicit QpnPermutation(Random& random);
  uint32_t Apply(uint32_t index) const;
  uint32_t Invert(uint32_t number) const;
  void HandOver(hand_over::StateStream& state);

 private:
  static constexpr int kRounds = 6;
  std::array<uint64_t, kRounds> keys_;
};

class QpnAllocator {
 public:
  QpnAllocator(const port::SteeringTable& steering, size_t workers, Random& random,
               Duration rest = Seconds(2));

  // Number of resting QPNs of a bucket from which the first of them is preferred to a new one.
  static constexpr size_t kManyResting = 4096;

  // Returns nothing if all numbers of that worker are in use or resting.
  std::optional<Qpn> Take(WorkerIndex worker, TimePoint now);
  void Give(Qpn qpn, TimePoint now);
  // Keeps a number, used or resting, from being assigned before `until`, since a peer may still use
  // it.
  void RestUntil(Qpn qpn, TimePoint until, TimePoint now);

  // Writes the state, or reads it into an allocator that has assigned nothing. The reader then
  // names the numbers in use; others that were assigned begin to rest.
  void HandOver(hand_over::StateStream& state);
  void KeepOnly(const std::vector<Qpn>& used, TimePoint now);

  size_t in_use() const { return in_use_; }
  size_t resting_longer() const { return longer_rest_.size(); }

 private:
  struct Resting {
    uint32_t index;
    TimePoint until;
  };
  struct Bucket {
    uint32_t next_index = 0;  // lower indices were assigned at least once
    std::deque<Resting> resting;
  };

  std::optional<Qpn> TakeFrom(uint8_t bucket, TimePoint now);

  Duration rest_;
  std::vector<QpnPermutation> permutations_;
  std::vector<Bucket> buckets_;
  std::vector<std::vector<uint8_t>> buckets_of_worker_;
  std::vector<size_t> turn_;  // next bucket per worker
  std::unordered_map<Qpn, TimePoint> longer_rest_;
  size_t sweep_longer_rest_at_ = 1024;
  size_t in_use_ = 0;
};

}  // namespace rocegw::session
