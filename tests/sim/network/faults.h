// SPDX-License-Identifier: Apache-2.0
// What a link does to packets that it should not: by rule first (the n-th packet that matches), by
// probability second. A lost packet has used its share of the link. Rules keep count of what they
// saw, so that a test can tell that its rule acted. Owned by one link; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gateway/base/time.h"
#include "tests/sim/network/packet.h"
#include "tests/sim/network/random.h"

namespace rocegw::sim {

enum class FaultKind : uint8_t {
  kNone,
  kLose,
  kDuplicate,  // a second one right behind it
  kDelay,      // by `delay`; packets behind it overtake
  kCorrupt,    // one bit that the ICRC covers
  kMark,       // ECN congestion experienced
};

struct FaultRule {
  FaultKind kind = FaultKind::kLose;
  // What it applies to; unset means any.
  std::optional<uint8_t> opcode;
  std::optional<uint32_t> destination_qpn;
  std::optional<uint32_t> psn;
  bool data_only = false;  // packets with more than 64 bytes of datagram
  std::function<bool(const Packet&)> where;
  // Of the packets that match: skip so many, then act on so many.
  uint64_t skip = 0;
  uint64_t times = 1;
  Duration delay = Microseconds(50);

  // Filled while running.
  uint64_t matched = 0;
  uint64_t acted = 0;
};

struct FaultProbabilities {
  double lose = 0;
  double duplicate = 0;
  double delay = 0;  // reorders: each is late by up to delay_most
  double corrupt = 0;
  double mark = 0;
  Duration delay_most = Microseconds(20);
  // Losses in bursts (Gilbert, Elliott): in the bad state everything is lost. It ends by chance, a
  // packet at a time, or after a while, for a link that hardly anything passes.
  double to_bad = 0;
  double to_good = 1;
  Duration bad_most = Milliseconds(1);

  bool any() const {
    return lose > 0 || duplicate > 0 || delay > 0 || corrupt > 0 || mark > 0 || to_bad > 0;
  }
};

class Faults {
 public:
  // A seed for each link, so that what one draws does not shift another's.
  void Seed(uint64_t seed) { random_ = Random(seed); }
  // The rule's number. Rules are tried in order; the first that acts on a packet wins.
  size_t Add(FaultRule rule);
  const FaultRule& rule(size_t number) const { return rules_[number]; }
  void Set(const FaultProbabilities& probabilities);
  // From here on everything passes.
  void Calm();

  bool active() const { return active_; }
  struct Verdict {
    FaultKind kind = FaultKind::kNone;
    Duration delay;
  };
  Verdict Judge(const Packet& packet, TimePoint now);
  // Flips one bit that must be noticed: not in the byte of the BTH that switches may write.
  void Corrupt(Packet& packet);

 private:
  std::vector<FaultRule> rules_;
  FaultProbabilities probabilities_;
  Random random_{1};
  bool active_ = false;
  bool bad_ = false;
  TimePoint bad_until_;
};

}  // namespace rocegw::sim
