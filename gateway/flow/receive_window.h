// SPDX-License-Identifier: Apache-2.0
// Receiving half of selective repeat: records which packets of one PSN space have arrived and what
// the next acknowledgement says. Packets are taken in any order, each once, and their owner places
// them at once; only this record waits for order. It is 24 bytes; a bitmap from the worker's pool
// exists while there are holes. All calls must use the same pool. Owned by a channel, on its
// worker's thread; lengths are bytes.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/ledger_pool.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::flow {

enum class Admission : uint8_t {
  kNew,
  kDuplicate,  // has arrived before
  kBeyond,     // ahead of the window; drop it
};

// State to keep of a window without holes and without an acknowledgement to send.
struct RestingWindow {
  Psn next;
  uint32_t marked = 0;
  uint8_t duplicates = 0;

  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);
};

class ReceiveWindow {
 public:
  ReceiveWindow() = default;
  ReceiveWindow(const ReceiveWindow&) = delete;
  ReceiveWindow& operator=(const ReceiveWindow&) = delete;
  ~ReceiveWindow() { Stop(); }

  void Start(Psn first, uint32_t window_packets);
  // Returns true if the window may be reduced to Rest(); Resume() continues from it.
  bool may_rest() const { return bitmap_ == nullptr && ack_now_ == 0 && unacked_ == 0; }
  RestingWindow Rest() const { return {next_, marked_, static_cast<uint8_t>(duplicates_)}; }
  void Resume(const RestingWindow& resting, uint32_t window_packets);
  // Gives the memory back to the pool.
  void Stop();
  // Sets the window in packets, at most kMaxFlowPackets. What has arrived stays.
  void SetWindow(uint32_t packets);

  // Returns what Admit would return, without recording anything.
  Admission Check(Psn psn) const;
  // Records a packet. After kNew it counts as arrived, so the owner must take it. `ack_wanted`: the
  // sender asks for an immediate acknowledgement.
  Admission Admit(LedgerPool& pool, Psn psn, TimePoint now, bool ack_wanted = false);
  // Counts payload bytes that arrived CE-marked.
  void CountMarked(uint32_t bytes) { marked_ += bytes; }
  // Makes an acknowledgement due, to answer a probe.
  void WantAck() { ack_now_ = 1; }

  Psn next() const { return next_; }
  // Returns the number of packets missing before the highest arrived one.
  uint32_t holes() const;
  bool has_holes() const { return bitmap_ != nullptr; }

  // Returns true if an acknowledgement must leave now: a hole, a duplicate, a request, or enough
  // packets in order.
  bool ack_due() const { return ack_now_ != 0; }
  // Returns when to acknowledge packets that arrived in order; kNever: all are acknowledged.
  TimePoint ack_deadline(TimePoint now) const;

  // Fields of the acknowledgement.
  uint32_t room() const { return window_; }
  uint32_t marked_bytes() const { return marked_; }
  uint8_t duplicates() const { return duplicates_; }  // running count, mod 2^8
  // Returns the time since the newest arrival, at most 274 s.
  Duration held(TimePoint now) const;
  // Writes the bitmap (bit k: next + 1 + k has arrived). Returns the number of words, at most
  // words.size(); 0 without holes.
  uint32_t FillBitmap(std::span<uint32_t> words) const;
  // Records that the acknowledgement was sent.
  void OnAckSent() {
    ack_now_ = 0;
    unacked_ = 0;
  }
  // Writes the state, or reads it into a new window.
  void HandOver(hand_over::StateStream& state, LedgerPool& pool);

  // Number of in-order packets that makes an acknowledgement due, and the delay with fewer.
  static constexpr uint8_t kAckEvery = 16;
  static constexpr Duration kAckDelay = Microseconds(50);

 private:
  // Converts to units of 64 ns, so that times fit 32 bits.
  static uint32_t Ticks(TimePoint time) { return static_cast<uint32_t>(time.ns >> 6); }
  bool Arrived(Psn psn) const;
  void Mark(LedgerPool& pool, Psn psn);
  void Advance();

  LedgerPage* bitmap_ = nullptr;  // packets that arrived beyond next_; nullptr: none
  Psn next_;
  uint32_t marked_ = 0;       // running count, mod 2^32
  uint32_t newest_ = 0;       // ticks of the newest arrival
  uint32_t window_ : 13 = 0;  // packets
  uint32_t unacked_ : 7 = 0;  // arrivals since the last acknowledgement, at most kAckEvery
  uint32_t ack_now_ : 1 = 0;
  uint32_t duplicates_ : 8 = 0;  // running count
};
static_assert(sizeof(ReceiveWindow) <= 24);

}  // namespace rocegw::flow
