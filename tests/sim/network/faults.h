// SPDX-License-Identifier: Apache-2.0
// Faults of a link: first by rule (the n-th packet that matches), then by probability. A lost
// packet has used its share of the link. Rules count what they matched, so that a test can check
// that its rule acted. Owned by one link; one thread.
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
  kDuplicate,  // a copy follows at once
  kDelay,      // by `delay`; later packets overtake
  kCorrupt,    // flips a bit that the ICRC covers
  kMark,       // sets CE (congestion experienced)
};

struct FaultRule {
  FaultKind kind = FaultKind::kLose;
  // Packets that the rule applies to; unset fields match any.
  std::optional<uint8_t> opcode;
  std::optional<uint32_t> destination_qpn;
  std::optional<uint32_t> psn;
  bool data_only = false;  // packets with more than 64 bytes of datagram
  std::function<bool(const Packet&)> where;
  // Skips this many matching packets, then acts on `times`.
  uint64_t skip = 0;
  uint64_t times = 1;
  Duration delay = Microseconds(50);

  // Results:
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
  // Bursts of loss (Gilbert-Elliott model): in the bad state every packet is lost. The state ends
  // by chance per packet, or after bad_most, for links with little traffic.
  double to_bad = 0;
  double to_good = 1;
  Duration bad_most = Milliseconds(1);

  bool any() const {
    return lose > 0 || duplicate > 0 || delay > 0 || corrupt > 0 || mark > 0 || to_bad > 0;
  }
};

class Faults {
 public:
  // Each link has its own seed, so that the draws of one do not shift another's.
  void Seed(uint64_t seed) { random_ = Random(seed); }
  // Adds a rule and returns its number. Rules are tried in order; the first that acts on a packet
  // wins.
  size_t Add(FaultRule rule);
  const FaultRule& rule(size_t number) const { return rules_[number]; }
  void Set(const FaultProbabilities& probabilities);
  // Removes all faults.
  void Calm();

  bool active() const { return active_; }
  struct Verdict {
    FaultKind kind = FaultKind::kNone;
    Duration delay;
  };
  Verdict Judge(const Packet& packet, TimePoint now);
  // Flips one bit that must be detected: not in the BTH byte that switches may write.
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
