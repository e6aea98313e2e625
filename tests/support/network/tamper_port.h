// SPDX-License-Identifier: Apache-2.0
// Decorator of a port that damages received packets, by rules first and by seeded probabilities
// second. It acts on reception because packets are complete there: a corrupted bit meets a sealed
// ICRC, and a duplicate is the same packet, as in a real network. To act on both directions, wrap
// both ports and share one script. Single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "gateway/port/packet_port.h"

namespace rocegw::testing {

enum class TamperAction : uint8_t {
  kDrop,
  kDelay,      // delivered behind `count` later packets of its direction
  kDuplicate,  // followed by `count` copies
  kCorrupt,    // flips bit `bit` of the UDP payload
  kMarkCe,     // ECN congestion experienced
  kReorder,    // holds the first `count` matches and delivers them in another order
};

struct TamperRule {
  TamperAction action = TamperAction::kDrop;
  // Packets to which the rule applies; unset: any.
  std::optional<int> direction;  // the number given to TamperPort
  std::optional<uint8_t> opcode;
  std::optional<uint32_t> first_psn;  // with last_psn: a range, also across the wrap
  uint32_t last_psn = 0;
  std::optional<uint32_t> destination_qpn;
  // Number of matching packets that are skipped, then number that are acted upon.
  size_t skip = 0;
  size_t times = SIZE_MAX;

  size_t count = 1;
  size_t bit = 0;  // taken modulo the packet's length; bits 32 to 39 are not covered by the ICRC

  // Filled by the script.
  size_t matched = 0;  // packets that match the description
  size_t acted = 0;    // matching packets that were acted upon
};

struct TamperProbabilities {
  double drop = 0;
  double delay = 0;
  size_t delay_max = 8;  // later packets, 1 to this
  double duplicate = 0;
  double corrupt = 0;
  double mark_ce = 0;
};

class TamperScript {
 public:
  explicit TamperScript(uint64_t seed = 1) : random_(seed) {}

  // Returns the rule's number. Rules are tried in order; the first that acts on a packet wins.
  size_t Add(const TamperRule& rule);
  const TamperRule& rule(size_t number) const { return rules_[number].rule; }
  // Sets the probabilities for packets on which no rule acted.
  void Set(const TamperProbabilities& probabilities) { probabilities_ = probabilities; }
  // Holds sent packets until so many flushes, as a port that has not resolved its neighbour.
  void ParkForFlushes(size_t flushes) { park_flushes_ = flushes; }
  // Stops all actions; held packets stay held until they are released.
  void Calm();

  size_t dropped() const { return dropped_; }
  size_t delayed() const { return delayed_; }
  size_t duplicated() const { return duplicated_; }
  size_t corrupted() const { return corrupted_; }
  size_t marked() const { return marked_; }
  size_t passed() const { return passed_; }

 private:
  friend class TamperPort;
  struct Packet {
    wire::RxMeta meta;
    std::vector<uint8_t> bytes;
  };
  struct HeldPacket {
    Packet packet;
    size_t after = 0;  // later packets still to pass
  };
  struct Direction {
    std::deque<Packet> ready;
    std::deque<HeldPacket> held;
  };
  struct RuleState {
    TamperRule rule;
    std::vector<Packet> collected;  // of kReorder
  };

  void Feed(int direction, Direction& state, Packet packet);
  void Apply(TamperAction action, size_t count, size_t bit, Direction& state, Packet packet);
  void Collect(RuleState& state, Direction& direction, Packet packet);
  void Pass(Direction& state, Packet packet);
  bool Matches(const TamperRule& rule, int direction, const Packet& packet) const;
  bool Chance(double probability);

  std::vector<RuleState> rules_;
  TamperProbabilities probabilities_;
  std::mt19937_64 random_;
  size_t park_flushes_ = 0;
  size_t dropped_ = 0;
  size_t delayed_ = 0;
  size_t duplicated_ = 0;
  size_t corrupted_ = 0;
  size_t marked_ = 0;
  size_t passed_ = 0;
};

class TamperPort final : public port::PacketPort {
 public:
  // Both must outlive the port. `direction`: number by which rules name this port's packets.
  TamperPort(port::PacketPort& inner, TamperScript& script, int direction)
      : inner_(inner), script_(script), direction_(direction) {}

  port::PortLimits limits() const override { return inner_.limits(); }
  port::TxPacket* Acquire() override { return inner_.Acquire(); }
  void Release(port::TxPacket* packet) override { inner_.Release(packet); }
  size_t Transmit(std::span<port::TxPacket* const> packets) override;
  bool Flush() override;
  size_t Receive(std::span<wire::RxDatagram> into) override;
  int wake_fd() const override { return inner_.wake_fd(); }
  const port::PortCounters& counters() const override { return inner_.counters(); }

  // Delivers all delayed packets in order.
  void ReleaseHeld();
  size_t held() const { return state_.held.size(); }

 private:
  port::PacketPort& inner_;
  TamperScript& script_;
  const int direction_;
  TamperScript::Direction state_;
  std::vector<TamperScript::Packet> handed_out_;
  std::vector<port::TxPacket*> parked_;
};

}  // namespace rocegw::testing
