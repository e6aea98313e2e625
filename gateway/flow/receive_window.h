// SPDX-License-Identifier: Apache-2.0
// The receiving half of selective repeat: which packets of one PSN space have arrived, and what the
// next acknowledgement says. Packets are taken in any order, each once, and placed by their owner
// as they come; only this bookkeeping waits for order. It is 24 bytes; a bitmap from the
// worker's pool, the same with each call, exists while there are holes. Owned by a channel, on its
// worker's thread; lengths are bytes.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/ledger_pool.h"

namespace rocegw::flow {

enum class Admission : uint8_t {
  kNew,
  kDuplicate,  // has arrived before
  kBeyond,     // further ahead than the window allows; to be dropped
};

// What is left of a window that has no holes and owes no acknowledgement.
struct RestingWindow {
  Psn next;
  uint32_t marked = 0;
  uint8_t duplicates = 0;
};

class ReceiveWindow {
 public:
  ReceiveWindow() = default;
  ReceiveWindow(const ReceiveWindow&) = delete;
  ReceiveWindow& operator=(const ReceiveWindow&) = delete;
  ~ReceiveWindow() { Stop(); }

  void Start(Psn first, uint32_t window_packets);
  // It may be put away; what is kept of it then, and how it goes on.
  bool may_rest() const { return bitmap_ == nullptr && ack_now_ == 0 && unacked_ == 0; }
  RestingWindow Rest() const { return {next_, marked_, static_cast<uint8_t>(duplicates_)}; }
  void Resume(const RestingWindow& resting, uint32_t window_packets);
  // Its memory goes back.
  void Stop();
  // More or less room from now on; what has arrived stays. At most kMaxFlowPackets.
  void SetWindow(uint32_t packets);

  // What Admit would say.
  Admission Check(Psn psn) const;
  // A packet has come. kNew: it counts as arrived from now on, so its owner must have taken it, or
  // must take it. `ack_wanted`: its sender does not want to wait for the acknowledgement.
  Admission Admit(LedgerPool& pool, Psn psn, TimePoint now, bool ack_wanted = false);
  // Payload bytes that came with CE.
  void CountMarked(uint32_t bytes) { marked_ += bytes; }
  // A probe is to be answered.
  void WantAck() { ack_now_ = 1; }

  Psn next() const { return next_; }
  // Packets that are missing before the highest that has arrived.
  uint32_t holes() const;
  bool has_holes() const { return bitmap_ != nullptr; }

  // Acknowledge now: a hole, a duplicate, a wish, or enough packets in order.
  bool ack_due() const { return ack_now_ != 0; }
  // When to acknowledge what has come in order; kNever when all of it has been. Asked at `now`.
  TimePoint ack_deadline(TimePoint now) const;

  // What the acknowledgement says.
  uint32_t room() const { return window_; }
  uint32_t marked_bytes() const { return marked_; }
  uint8_t duplicates() const { return duplicates_; }  // running, mod 2^8
  // Since the newest arrival; at most 274 s can be told.
  Duration held(TimePoint now) const;
  // Writes the bitmap (bit k: next + 1 + k has arrived) and returns how many words it takes, at
  // most those that there are; 0 without holes.
  uint32_t FillBitmap(std::span<uint32_t> words) const;
  // It was made.
  void OnAckSent() {
    ack_now_ = 0;
    unacked_ = 0;
  }

  // In-order packets until an acknowledgement, and how long fewer wait.
  static constexpr uint8_t kAckEvery = 16;
  static constexpr Duration kAckDelay = Microseconds(50);

 private:
  // Units of 64 ns, so that 32 bits last.
  static uint32_t Ticks(TimePoint time) { return static_cast<uint32_t>(time.ns >> 6); }
  bool Arrived(Psn psn) const;
  void Mark(LedgerPool& pool, Psn psn);
  void Advance();

  LedgerPage* bitmap_ = nullptr;  // of what has arrived beyond next_; nullptr: nothing
  Psn next_;
  uint32_t marked_ = 0;       // running, mod 2^32
  uint32_t newest_ = 0;       // ticks of the newest arrival
  uint32_t window_ : 13 = 0;  // packets
  uint32_t unacked_ : 7 = 0;  // arrivals since the last acknowledgement, at most kAckEvery
  uint32_t ack_now_ : 1 = 0;
  uint32_t duplicates_ : 8 = 0;  // running
};
static_assert(sizeof(ReceiveWindow) <= 24);

}  // namespace rocegw::flow
