// SPDX-License-Identifier: Apache-2.0
// Sending half of selective repeat: one PSN space towards one receiver, shared by any number of
// queue pairs. It knows what is in flight, what is lost, and how much may be sent. Of a packet's
// content it keeps only what the owner needs to rebuild it. A retransmission keeps its PSN. Owned
// by a channel, on its worker's thread; time is an argument, lengths are bytes.
//
// Loss detection follows RFC 8985, by transmission order. A packet is lost when one that was sent
// later has arrived, and three more were sent since or a quarter of the minimum round trip has
// passed. Both limits grow when a packet that was called lost arrives late. A probe, a packet
// without data, finds losses at the tail: its answer lists everything that arrived, so packets sent
// before the probe and not listed are lost. On a path that keeps order, no packet is ever called
// lost wrongly.
//
// A flow that was idle for long can be reduced to a RestingFlow, from which Resume continues.
//
// Invariant: una <= next <= una + 4096. An unacknowledged packet in [una, next) is either in flight
// or lost; lost packets leave first.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/ledger_pool.h"
#include "gateway/flow/rtt.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::flow {

struct SelectiveConfig {
  CcConfig cc;
  uint32_t max_packets = kMaxFlowPackets;   // limit of next - una; at most kMaxFlowPackets
  uint32_t room_packets = kMaxFlowPackets;  // initial window of the receiver, in packets
  Duration rtt;                             // round trip of the handshake; 0: unknown
};

// Contents of an acknowledgement.
struct AckInfo {
  Psn next;                          // next expected PSN, which has not arrived
  std::span<const uint32_t> bitmap;  // bit k: next + 1 + k has arrived
  uint32_t marked_bytes_running = 0;
  uint8_t duplicates_running = 0;  // packets that arrived more than once, mod 2^8
  uint8_t hint = 0;
  Duration held;  // time between the newest arrival and the acknowledgement
  uint32_t room_packets = 0;
  uint32_t probe = 0;  // number of the probe that is answered; 0: none
};

// Receives every acknowledged packet once, in any order, and the congestion feedback. It must not
// touch the flow during the calls.
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
  kPathSuspect,  // like kProbe, but several probes are unanswered: use another path if there is one
  kDead,         // silent for so long that the peer is considered dead
};

// State to keep of an idle flow. It omits the pacing debt, the congestion control state except for
// the window reached, and the recent reordering except for its level.
struct RestingFlow {
  RttEstimator rtt;
  Psn next;
  uint32_t marked = 0;
  uint32_t window = 0;  // congestion control window in bytes
  uint32_t lost = 0;
  uint32_t resent = 0;
  uint32_t spurious = 0;
  uint16_t room = 0;  // receiver's window in packets
  uint8_t reorder_level : 3 = 0;
  uint8_t kind : 5 = 0;  // CcKind
  uint8_t duplicates = 0;

  CcKind cc_kind() const { return static_cast<CcKind>(kind); }
  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state);
};
static_assert(sizeof(RestingFlow) == 40 && kCcKinds <= 32);

class SelectiveFlow {
 public:
  SelectiveFlow() = default;
  SelectiveFlow(const SelectiveFlow&) = delete;
  SelectiveFlow& operator=(const SelectiveFlow&) = delete;
  ~SelectiveFlow() { Stop(); }

  void Start(const SelectiveConfig& config, Psn first, TimePoint now);
  // Forgets what is in flight and gives the memory back to the pool.
  void Stop();
  // Switches the algorithm or its parameters while the flow runs. What is in flight stays, and the
  // new algorithm continues at the rate or window that the old one had reached.
  void SwitchCc(const CcConfig& cc, TimePoint now);

  // Returns from when the flow may be reduced to Rest() if nothing happens until then; kNever: not.
  // With the receiver's window closed it must keep probing.
  TimePoint rests_at() const { return idle() && !room_closed() ? timer_ + kRestAfter : kNever; }
  // Returns the state to keep. Only if rests_at() has passed.
  RestingFlow Rest() const;
  // Called instead of Start. config.kind must be that of the resting flow.
  void Resume(const RestingFlow& resting, const CcConfig& cc, TimePoint now);

  Psn una() const { return una_; }
  Psn next() const { return next_; }
  bool idle() const { return una_ == next_; }
  // Lost packets do not count.
  uint64_t in_flight() const { return in_flight_; }
  uint32_t packets_in_flight() const { return flying_; }
  // Lost packets that were not sent again yet.
  uint32_t packets_lost() const { return waiting_; }
  const RttEstimator& rtt() const { return rtt_; }
  CcKind cc_kind() const { return cc_.kind; }
  // Returns true if packets are to be sent with ECT(0).
  bool uses_marks() const { return AlgorithmOf(cc_.kind).uses_marks; }
  // Returns the bytes that congestion control allows per round trip.
  uint64_t cc_window() const;
  uint32_t probe_number() const { return probe_number_; }
  // Counts a probe that the caller sends without a deadline.
  void BeginProbe(TimePoint now);
  // Returns the number of probes since the last sign of life.
  uint32_t unanswered() const { return probes_; }

  // Returns true if the receiver's window and the records have space for one more packet,
  // regardless of congestion control.
  bool HasPlace() const;
  // Returns true if a new packet of `bytes` may leave now. It must fit the window whatever is lost.
  // One packet is always allowed when nothing is in flight and the receiver's window is open.
  bool MaySend(uint64_t bytes, TimePoint now) const;
  // Returns true if the packet of NextLost may leave. It already has its space in the receiver's
  // window.
  bool MayResend(uint64_t bytes, TimePoint now) const;
  // Returns when pacing allows `bytes` to leave; kNever: pacing is not the limit, or an
  // acknowledgement must come first.
  TimePoint earliest(uint64_t bytes) const;

  // Records a new packet that MaySend has allowed and returns its PSN. `pool` must be the same for
  // every call and outlive the flow.
  Psn OnSent(LedgerPool& pool, const FrameRef& frame, uint32_t bytes, TimePoint now);
  // Returns true if the packet that leaves now should ask for its acknowledgement: a quarter of the
  // window has left since the last request. The receiver does not know the window, and by itself
  // may wait for more packets than a small window has.
  bool AsksForAck();
  // Returns the packet that was lost first, if any.
  bool NextLost(Psn& psn, FrameRef& frame, uint32_t& bytes) const;
  // Records that the lost packet was sent again.
  void OnResent(Psn psn, TimePoint now);

  // Processes an acknowledgement. Returns false, unused, if it is older than an earlier one or
  // covers PSNs that were never sent.
  bool OnAck(LedgerPool& pool, const AckInfo& ack, TimePoint now, AckedSink& sink);
  void OnCnp(TimePoint now);
  FlowVerdict OnDeadline(TimePoint now);
  TimePoint deadline() const;

  // Calls visit(Psn, const FrameRef&) for every unacknowledged packet in PSN order, to report them
  // to their owners when the channel closes.
  template <typename Visit>
  void ForEachOutstanding(Visit visit) const {
    for (Psn psn = una_; psn != next_; psn = psn + 1) {
      if (const SentRecord* record = Find(psn); record != nullptr) visit(psn, record->frame);
    }
  }

  // Packets since Start, mod 2^32: called lost, sent again, and called lost wrongly (arrived twice
  // or late).
  uint32_t lost() const { return lost_; }
  uint32_t resent() const { return resent_; }
  uint32_t spurious() const { return spurious_; }

  // Returns true between Start or Resume and the end of the flow.
  bool started() const { return cc_.profile != nullptr; }
  // Writes the state, or reads it into a new flow that uses `profile` from now on.
  void HandOver(hand_over::StateStream& state, LedgerPool& pool, const CcProfile& profile);

  // Idle time after which a flow may be reduced to a RestingFlow.
  static constexpr Duration kRestAfter = Seconds(1);
  static constexpr uint32_t kReorderPackets = 3;
  // Numbers of unanswered probes after which the path is suspect (and every so many further ones)
  // and the peer is dead: at least 60 ms and 4 s with the waits between them.
  static constexpr uint8_t kSuspectAfter = 6;
  static constexpr uint8_t kDeadAfter = 24;
  // Least probe timeout: a probe is cheap, but a peer that shares its cores may answer late.
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
  // Write or read the records of one list, and one record at a PSN.
  void HandOver(hand_over::StateStream& state, LedgerPool& pool, List& list, bool lost);
  SentRecord* Place(LedgerPool& pool, Psn psn);

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
  // Returns when time alone makes the oldest packet in flight lost; kNever: none sent later has
  // arrived.
  TimePoint ReorderDeadline() const;
  TimePoint ProbeDeadline() const;
  bool room_closed() const { return idle() && limit_ == next_; }

  CcState MakeCc(const CcConfig& config, TimePoint now) const;

  // Ordered by use: first the fields that every packet and acknowledgement touches.
  LedgerPage* directory_ = nullptr;  // nullptr: nothing in flight
  TimePoint timer_;                  // last sign of life, or first packet after idle time
  Psn una_;
  Psn next_;
  Psn limit_;                     // end of the receiver's window
  uint32_t in_flight_ = 0;        // bytes
  uint32_t order_ = 0;            // number of the next transmission
  uint32_t newest_ = 0;           // number of the newest transmission that has arrived
  uint32_t newest_rtt_ = 0;       // ns, of that transmission
  List flight_ = {kNone, kNone};  // in order of transmission
  uint16_t flying_ = 0;
  uint16_t waiting_ = 0;
  uint16_t unasked_ = 0;  // units of 64 bytes, sent since the last request for an acknowledgement
  uint16_t max_packets_ = 0;
  uint8_t probes_ = 0;  // since the last sign of life
  uint8_t calm_ = 0;    // loss episodes without a late packet
  uint8_t reorder_level_ = 0;
  uint8_t duplicates_ = 0;  // last value of the receiver's running count
  uint32_t marked_ = 0;     // bytes, last value of the receiver's running count

  RttEstimator rtt_;
  List missing_ = {kNone, kNone};  // lost, in order of detection
  CcState cc_;

  // Losses and probes.
  uint32_t probe_order_ = 0;  // transmissions before the newest probe have a smaller order
  uint32_t episode_ = 0;      // losses with a smaller order belong to the last loss episode
  uint32_t lost_ = 0;
  uint32_t resent_ = 0;
  uint32_t spurious_ = 0;
  uint32_t probe_number_ = 0;
};

}  // namespace rocegw::flow
