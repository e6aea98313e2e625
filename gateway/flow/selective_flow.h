// SPDX-License-Identifier: Apache-2.0
// The sending half of selective repeat: one PSN space towards one receiver, shared by any number of
// queue pairs. It knows what is in flight, what is lost, and how much may be sent; of a packet's
// content only what its owner needs to build it again. A packet keeps its PSN when it is sent
// again. Owned by a channel, on its worker's thread; time is an argument, lengths are bytes.
//
// Loss (after RFC 8985, by order of transmission): a packet is lost when one that was sent later
// has arrived, and three more were sent since or a quarter of the least round trip has passed. Both
// grow when a packet turns out to have been late. What nothing follows is found by a probe, a
// packet without data: its answer is all that the receiver has, so what was sent before the probe
// and is not in it is lost. On a path that keeps order nothing else is ever called lost.
//
// A flow that has sent nothing for long can be put away: Resting is all that is kept of it, and
// Resume goes on from there.
//
// Invariant: una <= next <= una + 4096. A packet in [una, next) that is not acknowledged is either
// in flight or lost; what is lost leaves first.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/ledger_pool.h"
#include "gateway/flow/rtt.h"

namespace rocegw::flow {

struct SelectiveConfig {
  CcConfig cc;
  uint32_t max_packets = kMaxFlowPackets;   // in [una, next); no more than kMaxFlowPackets
  uint32_t room_packets = kMaxFlowPackets;  // what the receiver takes to begin with
  Duration rtt;                             // of the handshake; 0: not known
};

// What an acknowledgement says, as values.
struct AckInfo {
  Psn next;                          // expected in order; has not arrived
  std::span<const uint32_t> bitmap;  // bit k: next + 1 + k has arrived
  uint32_t marked_bytes_running = 0;
  uint8_t duplicates_running = 0;  // packets that had come before, mod 2^8
  uint8_t hint = 0;
  Duration held;  // between the newest arrival and the acknowledgement
  uint32_t room_packets = 0;
  uint32_t probe = 0;  // number of the probe that it answers; 0: none
};

// Is told every acknowledged packet once, in any order, and what congestion control learnt. It must
// not touch the flow meanwhile.
class AckedSink {
 public:
  virtual void OnFrameAcked(Psn psn, const FrameRef& frame) = 0;
  virtual void OnFeedback(const CcFeedback&) {}

 protected:
  ~AckedSink() = default;
};

enum class FlowVerdict : uint8_t {
  kNothing,
  kProbe,        // send a probe with probe_number()
  kPathSuspect,  // the same, but several are unanswered: on another path if there is one
  kDead,         // nothing has been heard for so long that the peer is gone
};

// What is left of a flow with nothing in flight. Lost are what pacing owes, what congestion control
// knew but for the window it had reached, and how orderly the path lately was but for the level.
struct RestingFlow {
  RttEstimator rtt;
  Psn next;
  uint32_t marked = 0;
  uint32_t window = 0;  // bytes that congestion control let into the network
  uint32_t lost = 0;
  uint32_t resent = 0;
  uint32_t spurious = 0;
  uint16_t room = 0;  // packets that the receiver takes
  uint8_t reorder_level : 3 = 0;
  uint8_t kind : 5 = 0;  // CcKind
  uint8_t duplicates = 0;

  CcKind cc_kind() const { return static_cast<CcKind>(kind); }
};
static_assert(sizeof(RestingFlow) == 40 && kCcKinds <= 32);

class SelectiveFlow {
 public:
  SelectiveFlow() = default;
  SelectiveFlow(const SelectiveFlow&) = delete;
  SelectiveFlow& operator=(const SelectiveFlow&) = delete;
  ~SelectiveFlow() { Stop(); }

  void Start(const SelectiveConfig& config, Psn first, TimePoint now);
  // Forgets what is in flight; its memory goes back.
  void Stop();
  // Another algorithm, or other parameters, while the flow runs: what is in flight stays, and the
  // new one goes on at the rate or window that the old one had reached.
  void SwitchCc(const CcConfig& cc, TimePoint now);

  // From when on it may be put away, if nothing happens until then; kNever: it may not. With a
  // closed window it must go on asking.
  TimePoint rests_at() const { return idle() && !room_closed() ? timer_ + kRestAfter : kNever; }
  // Of one that may.
  RestingFlow Rest() const;
  // Instead of Start, with the kind of the resting one.
  void Resume(const RestingFlow& resting, const CcConfig& cc, TimePoint now);

  Psn una() const { return una_; }
  Psn next() const { return next_; }
  bool idle() const { return una_ == next_; }
  // Lost ones are not in flight.
  uint64_t in_flight() const { return in_flight_; }
  uint32_t packets_in_flight() const { return flying_; }
  // And not resent yet.
  uint32_t packets_lost() const { return waiting_; }
  const RttEstimator& rtt() const { return rtt_; }
  CcKind cc_kind() const { return cc_.kind; }
  // Packets may say to switches that they can be marked.
  bool uses_marks() const { return AlgorithmOf(cc_.kind).uses_marks; }
  // Bytes that congestion control lets into the network per round trip.
  uint64_t cc_window() const;
  uint32_t probe_number() const { return probe_number_; }
  // Counts a probe that the caller sends now although no deadline asks for it.
  void BeginProbe(TimePoint now);
  // Probes since the last sign of life.
  uint32_t unanswered() const { return probes_; }

  // The receiver takes one more packet, and there is a record for it: whatever congestion control
  // says.
  bool HasPlace() const;
  // May a new packet of so many bytes leave now? It must also fit into the window, whatever is
  // lost. One packet is always allowed when nothing is in flight and the window is open.
  bool MaySend(uint64_t bytes, TimePoint now) const;
  // May that of NextLost? It has its place in the window.
  bool MayResend(uint64_t bytes, TimePoint now) const;
  // When pacing lets so many bytes leave; kNever: it is not what holds them up, or an
  // acknowledgement must come first.
  TimePoint earliest(uint64_t bytes) const;

  // Enters a new packet, which MaySend has allowed; returns its PSN. `pool`: the same with each
  // call; it outlives the flow.
  Psn OnSent(LedgerPool& pool, const FrameRef& frame, uint32_t bytes, TimePoint now);
  // The packet that leaves now should ask for its acknowledgement: a quarter of the window has left
  // since one did. A receiver knows no window, and waits for more packets than a small one has.
  bool AsksForAck();
  // The packet that has been lost for longest, if any.
  bool NextLost(Psn& psn, FrameRef& frame, uint32_t& bytes) const;
  // It was sent again.
  void OnResent(Psn psn, TimePoint now);

  // False: the acknowledgement is older than one that came before, or speaks of what was never
  // sent; it was not used.
  bool OnAck(LedgerPool& pool, const AckInfo& ack, TimePoint now, AckedSink& sink);
  void OnCnp(TimePoint now);
  FlowVerdict OnDeadline(TimePoint now);
  TimePoint deadline() const;

  // Calls visit(Psn, const FrameRef&) for every packet that is not acknowledged, by PSN: what the
  // owners are told when the channel ends.
  template <typename Visit>
  void ForEachOutstanding(Visit visit) const {
    for (Psn psn = una_; psn != next_; psn = psn + 1) {
      if (const SentRecord* record = Find(psn); record != nullptr) visit(psn, record->frame);
    }
  }

  // Packets since Start, mod 2^32: called lost, sent again, and come twice or late although called
  // lost.
  uint32_t lost() const { return lost_; }
  uint32_t resent() const { return resent_; }
  uint32_t spurious() const { return spurious_; }

  // Nothing sent for so long, and a flow gives up what only one that sends needs.
  static constexpr Duration kRestAfter = Seconds(1);
  static constexpr uint32_t kReorderPackets = 3;
  // Unanswered probes until the path is suspected (and each time again), and until the peer is
  // dead: with the waits between them 60 ms and more, and 4 s and more.
  static constexpr uint8_t kSuspectAfter = 6;
  static constexpr uint8_t kDeadAfter = 24;
  // A probe costs little, but a peer that shares its cores is late by itself.
  static constexpr Duration kProbeFloor = Milliseconds(1);
  static constexpr Duration kProbeCeiling = Milliseconds(256);
  static constexpr Duration kProbeWithoutRtt = Milliseconds(50);

 private:
  struct Newest;
  struct List {
    uint16_t first;
    uint16_t last;
  };
  static constexpr uint16_t kNone = 0xFFFF;
  static constexpr uint8_t kMaxReorderLevel = 7;
  static constexpr uint8_t kCalmEpisodes = 16;

  static uint32_t SlotOf(Psn psn) { return psn.value % kMaxFlowPackets; }
  Psn PsnOf(uint32_t slot) const { return una_ + (slot - SlotOf(una_)) % kMaxFlowPackets; }
  SentRecord& At(uint32_t slot) const {
    return directory_->chunks[slot / kRecordsPerChunk]->records[slot % kRecordsPerChunk];
  }
  const SentRecord* Find(Psn psn) const;
  void Append(List& list, uint32_t slot);
  void Remove(List& list, const SentRecord& record);
  void EnterFlight(SentRecord& record, uint32_t slot, TimePoint now);

  void AckPiece(LedgerPool& pool, Psn first, uint32_t count, uint64_t bits, AckedSink& sink,
                Newest& newest);
  void AckBitmap(LedgerPool& pool, const AckInfo& ack, AckedSink& sink, Newest& newest);
  void AckRecord(const SentRecord& record, Newest& newest);
  void LearnFrom(const AckInfo& ack, const Newest& newest, uint64_t in_flight_before,
                 AckedSink& sink, TimePoint now);
  void NoteNewest(const Newest& newest, Duration rtt);
  void FindLost(TimePoint now);
  void DeclareOldestLost(TimePoint now);
  void OnLate();
  Duration ReorderTime() const;
  // Of the oldest packet in flight, by time alone; kNever when none sent later has arrived.
  TimePoint ReorderDeadline() const;
  TimePoint ProbeDeadline() const;
  bool room_closed() const { return idle() && limit_ == next_; }

  CcState MakeCc(const CcConfig& config, TimePoint now) const;

  // By use: first what every packet and every acknowledgement touches.
  LedgerPage* directory_ = nullptr;  // nullptr: nothing in flight
  TimePoint timer_;                  // last sign of life, or first packet after nothing in flight
  Psn una_;
  Psn next_;
  Psn limit_;                     // the receiver takes what is before
  uint32_t in_flight_ = 0;        // bytes
  uint32_t order_ = 0;            // of the next transmission
  uint32_t newest_ = 0;           // order of the newest transmission that has arrived
  uint32_t newest_rtt_ = 0;       // ns, of that transmission
  List flight_ = {kNone, kNone};  // in order of transmission
  uint16_t flying_ = 0;
  uint16_t waiting_ = 0;
  uint16_t unasked_ = 0;  // units of 64 bytes, sent since a packet asked for its acknowledgement
  uint16_t max_packets_ = 0;
  uint8_t probes_ = 0;  // since the last sign of life
  uint8_t calm_ = 0;    // episodes without a late packet
  uint8_t reorder_level_ = 0;
  uint8_t duplicates_ = 0;  // running count of the receiver
  uint32_t marked_ = 0;     // bytes, running count of the receiver

  RttEstimator rtt_;
  List missing_ = {kNone, kNone};  // lost, in the order in which it was found
  CcState cc_;

  // Losses and probes.
  uint32_t probe_order_ = 0;  // what was sent before the newest probe has a smaller order
  uint32_t episode_ = 0;      // what is lost with a smaller order belongs to the last loss episode
  uint32_t lost_ = 0;
  uint32_t resent_ = 0;
  uint32_t spurious_ = 0;
  uint32_t probe_number_ = 0;
};

}  // namespace rocegw::flow
