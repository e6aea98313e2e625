// SPDX-License-Identifier: Apache-2.0
// Sender and receiver of selective repeat with a path between them, in virtual time: a link with
// rate and delay that loses, duplicates and delays data packets and acknowledgements by probability
// or rule. Records sent, dropped, repeated, delivered and acknowledged packets in plain sets, so
// that tests do not depend on the code under test. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <vector>

#include "gateway/flow/receive_window.h"
#include "gateway/flow/selective_flow.h"
#include "tests/support/random.h"

namespace rocegw::testing {

struct PathRules {
  uint64_t bits_per_second = 10'000'000'000;
  Duration delay = Microseconds(25);  // each way
  double loss = 0;                    // share of data packets
  double ack_loss = 0;                // share of acknowledgements and probes
  double twice = 0;
  double late = 0;  // share of data packets and acknowledgements that are delayed, by up to
  Duration lateness;
  // Returns true to drop the n-th transmission, from 0.
  std::function<bool(uint64_t)> drop;
};

class SelectivePath : private flow::AckedSink {
 public:
  SelectivePath(const flow::SelectiveConfig& config, uint32_t receive_window, Psn first,
                const PathRules& rules, uint64_t seed)
      : rules_(rules), random_(seed), first_(first) {
    sender.Start(config, first, now_);
    receiver.Start(first, receive_window);
  }

  static constexpr uint32_t kPacketBytes = 1024;

  // Runs until `packets` packets are sent and acknowledged, or until `end`. Returns false if the
  // flow declared its peer dead or the time was up.
  bool Run(uint64_t packets, TimePoint end) {
    packets_ = packets;
    Pump();
    while (acked.size() < packets_) {
      TimePoint next = Earlier(sender.deadline(), receiver.ack_deadline(now_));
      if (sender_blocked_) next = Earlier(next, std::max(sender.earliest(kPacketBytes), now_));
      if (!events_.empty()) next = Earlier(next, events_.top().at);
      if (next > end || next == kNever) return false;
      now_ = std::max(now_, next);
      if (!Step()) return false;
      Pump();
    }
    return true;
  }

  TimePoint now() const { return now_; }
  uint64_t packets_sent() const { return sent_; }  // the first time
  uint64_t InOrderPlace(Psn psn) const { return (psn.value - first_.value) & kPsnMask; }

  flow::LedgerPool sender_pool;
  flow::LedgerPool receiver_pool;
  flow::SelectiveFlow sender;
  flow::ReceiveWindow receiver;

  // By packet number, from 0; multisets as maps to counts.
  std::map<uint64_t, int> dropped;
  std::map<uint64_t, int> resent;
  std::map<uint64_t, int> delivered;
  std::map<uint64_t, int> acked;
  uint64_t dropped_count = 0;
  uint64_t resent_count = 0;
  uint64_t placed_before_hole = 0;  // accepted while an earlier packet was missing
  uint64_t probes = 0;
  uint64_t suspects = 0;
  uint64_t faults = 0;  // violations of the contract of sender or receiver
  size_t most_ledger_bytes = 0;
  uint32_t most_in_window = 0;

 private:
  enum class Kind : uint8_t { kData, kProbe, kAck };
  struct Packet {
    Kind kind = Kind::kData;
    uint64_t number = 0;  // data
    Psn psn;
    bool ack_wanted = false;
    uint32_t probe = 0;
    uint32_t words = 0;
    uint8_t duplicates = 0;
    std::array<uint32_t, 128> bitmap;
    Duration held;
    uint32_t room = 0;
  };
  struct Event {
    TimePoint at;
    uint64_t sequence = 0;
    size_t packet = 0;
    bool operator<(const Event& o) const { return at != o.at ? at > o.at : sequence > o.sequence; }
  };

  bool Chance(double p) {
    return p > 0 && static_cast<double>(random_.Below(1u << 30)) < p * (1u << 30);
  }

  void Deliver(const Packet& packet, TimePoint at) {
    if (Chance(rules_.late))
      at = at + Nanoseconds(static_cast<int64_t>(
                    random_.Below(static_cast<size_t>(rules_.lateness.ns) + 1)));
    const int copies = Chance(rules_.twice) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      size_t index = packets_in_air_.size();
      if (free_.empty()) {
        packets_in_air_.push_back(packet);
      } else {
        index = free_.back();
        free_.pop_back();
        packets_in_air_[index] = packet;
      }
      events_.push({at, sequence_++, index});
    }
  }

  void Transmit(const Packet& packet) {
    const int64_t ns =
        static_cast<int64_t>(kPacketBytes * 8 * 1'000'000'000ull / rules_.bits_per_second);
    link_free_ = std::max(link_free_, now_) + Nanoseconds(ns);
    const uint64_t transmission = transmissions_++;
    if (Chance(rules_.loss) || (rules_.drop && rules_.drop(transmission))) {
      ++dropped[packet.number];
      ++dropped_count;
      return;
    }
    Deliver(packet, link_free_ + rules_.delay);
  }

  void Pump() {
    sender_blocked_ = false;
    for (;;) {
      Psn psn;
      flow::FrameRef frame;
      uint32_t bytes = 0;
      const bool again = sender.NextLost(psn, frame, bytes);
      if (!again && sent_ == packets_) return;
      if (!(again ? sender.MayResend(kPacketBytes, now_) : sender.MaySend(kPacketBytes, now_))) {
        sender_blocked_ = true;
        return;
      }
      if (again) {
        sender.OnResent(psn, now_);
        if (bytes != kPacketBytes ||
            frame.owner.slot().index != static_cast<uint32_t>(InOrderPlace(psn)))
          ++faults;
        ++resent[frame.owner.slot().index];
        ++resent_count;
      } else {
        frame.owner = SlotHandle{static_cast<uint32_t>(sent_), 0};
        psn = sender.OnSent(sender_pool, frame, kPacketBytes, now_);
        if (InOrderPlace(psn) != (sent_ & kPsnMask)) ++faults;
        ++sent_;
      }
      const auto window = static_cast<uint32_t>(PsnDistance(sender.next(), sender.una()));
      most_in_window = std::max(most_in_window, window);
      most_ledger_bytes = std::max(most_ledger_bytes, sender_pool.bytes_used());
      CheckSender();
      Transmit({.kind = Kind::kData,
                .number = frame.owner.slot().index,
                .psn = psn,
                .ack_wanted = sent_ == packets_,
                .bitmap = {}});
    }
  }

  void CheckSender() {
    const uint64_t outstanding = sent_ - acked.size();
    if (sender.packets_in_flight() + sender.packets_lost() != outstanding) ++faults;
    if (sender.in_flight() != uint64_t{sender.packets_in_flight()} * kPacketBytes) ++faults;
    if (sender.resent() != resent_count) ++faults;
  }

  void SendAck(uint32_t probe) {
    Packet ack{.kind = Kind::kAck,
               .psn = receiver.next(),
               .probe = probe,
               .held = receiver.held(now_),
               .room = receiver.room()};
    ack.duplicates = receiver.duplicates();
    ack.words = receiver.FillBitmap(ack.bitmap);
    receiver.OnAckSent();
    if (!Chance(rules_.ack_loss)) Deliver(ack, now_ + rules_.delay);
  }

  void OnData(const Packet& packet) {
    const flow::Admission check = receiver.Check(packet.psn);
    const flow::Admission admission =
        receiver.Admit(receiver_pool, packet.psn, now_, packet.ack_wanted);
    if (check != admission) ++faults;
    if (admission == flow::Admission::kNew) {
      if (++delivered[packet.number] != 1) ++faults;
      missing_front_ = std::max(missing_front_, packet.number);
      while (delivered.contains(in_order_)) ++in_order_;
      if (packet.number >= in_order_) ++placed_before_hole;
      if (InOrderPlace(receiver.next()) != (in_order_ & kPsnMask)) ++faults;
      if (receiver.holes() != missing_front_ + 1 - delivered.size()) ++faults;
    } else if (admission == flow::Admission::kBeyond || !delivered.contains(packet.number)) {
      // The sender stays within its window, and a repeated packet was received before.
      ++faults;
    }
    if (receiver.ack_due()) SendAck(0);
  }

  void OnAckPacket(const Packet& packet) {
    sender.OnAck(sender_pool,
                 {.next = packet.psn,
                  .bitmap = std::span(packet.bitmap).first(packet.words),
                  .duplicates_running = packet.duplicates,
                  .held = packet.held,
                  .room_packets = packet.room,
                  .probe = packet.probe},
                 now_, *this);
    CheckSender();
  }

  bool Step() {
    while (!events_.empty() && events_.top().at <= now_) {
      const size_t index = events_.top().packet;
      events_.pop();
      const Packet packet = packets_in_air_[index];
      free_.push_back(index);
      if (packet.kind == Kind::kData) OnData(packet);
      if (packet.kind == Kind::kProbe) SendAck(packet.probe);
      if (packet.kind == Kind::kAck) OnAckPacket(packet);
    }
    if (receiver.ack_deadline(now_) <= now_) SendAck(0);
    if (sender.deadline() > now_) return true;
    const flow::FlowVerdict verdict = sender.OnDeadline(now_);
    if (verdict == flow::FlowVerdict::kDead) return false;
    if (verdict == flow::FlowVerdict::kPathSuspect) ++suspects;
    if (verdict != flow::FlowVerdict::kNothing) {
      ++probes;
      if (!Chance(rules_.ack_loss)) {
        // Behind the data that was sent before.
        Deliver({.kind = Kind::kProbe, .probe = sender.probe_number(), .bitmap = {}},
                std::max(link_free_, now_) + rules_.delay);
      }
    }
    return true;
  }

  void OnFrameAcked(Psn psn, const flow::FrameRef& frame) override {
    if (++acked[frame.owner.slot().index] != 1) ++faults;
    if (!delivered.contains(frame.owner.slot().index)) ++faults;
    if (InOrderPlace(psn) != (frame.owner.slot().index & kPsnMask)) ++faults;
  }

  PathRules rules_;
  Random random_;
  Psn first_;
  TimePoint now_{1'000'000};
  TimePoint link_free_;
  std::priority_queue<Event> events_;
  std::vector<Packet> packets_in_air_;
  std::vector<size_t> free_;
  uint64_t sequence_ = 0;
  uint64_t transmissions_ = 0;
  uint64_t packets_ = 0;
  uint64_t sent_ = 0;
  uint64_t in_order_ = 0;
  uint64_t missing_front_ = 0;
  bool sender_blocked_ = false;
};

}  // namespace rocegw::testing
