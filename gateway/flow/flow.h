// SPDX-License-Identifier: Apache-2.0
// A flow: one PSN space towards one receiver, what is in flight in it, when something counts as
// lost, and how much may be sent. It knows bytes, PSNs and times; neither packets' content nor work
// requests. A native RC queue pair owns one. Loss recovery is Go-Back-N with a tail probe: native
// peers answer nothing else (IBTA 9.7.5).
//
// Invariant: una <= next <= max; [una, next) is in the ledger; [next, max) was sent before and is
// to be sent again.
#pragma once

#include <cstdint>

#include "gateway/base/growing_ring.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/rtt.h"

namespace rocegw::flow {

struct FlowConfig {
  CcConfig cc;
  uint32_t max_packets = 1024;  // in flight, whatever their size
  Duration timeout;             // transport timer; 0: none
  uint32_t retry_count = 7;
};

// 4.096 us * 2^code, 0 for code 0 (IBTA 9.9.2.1.1).
Duration TransportTimeout(uint8_t code);

enum class LossVerdict : uint8_t {
  kNothing,
  kProbe,         // send the oldest packet once more, asking for an acknowledgement
  kRewind,        // the flow has gone back to una: send again from there
  kRetriesSpent,  // no progress in the whole retry budget
};

class Flow {
 public:
  // Congestion control begins: answers may leave from now on. Start does it anew.
  void Open(const CcConfig& cc, TimePoint now);
  void Start(const FlowConfig& config, Psn first, TimePoint now);
  // New limits for a flow that runs (modify in SQD, RTR to RTS).
  void Configure(const FlowConfig& config);
  // Another algorithm, or other parameters, while the flow runs: what is in flight stays, and the
  // new one goes on at the rate or window that the old one had reached.
  void SwitchCc(const CcConfig& cc, TimePoint now);
  CcKind cc_kind() const { return cc_.kind; }
  // Packets may say to switches that they can be marked.
  bool uses_marks() const { return AlgorithmOf(cc_.kind).uses_marks; }
  // Bytes that congestion control lets into the network per round trip.
  uint64_t cc_window() const { return AlgorithmOf(cc_.kind).window(cc_, rtt_.smoothed()); }

  Psn una() const { return una_; }
  Psn next() const { return next_; }
  Psn max() const { return max_; }
  bool idle() const { return ledger_.empty(); }
  uint64_t in_flight() const { return in_flight_; }
  const RttEstimator& rtt() const { return rtt_; }
  uint32_t retries_left() const { return retries_left_; }
  // Counts how often the flow went back to una: whoever maps PSNs to requests looks again when it
  // changes.
  uint32_t rewinds() const { return rewinds_; }

  // May `bytes` more be sent now? One packet is always allowed when nothing is in flight.
  bool MaySend(uint64_t bytes, TimePoint now) const;
  // The same without that exception.
  bool HasRoom(uint64_t bytes, TimePoint now) const;
  // When to ask again if MaySend said no because of pacing; kNever: an acknowledgement must come
  // first.
  TimePoint earliest() const;

  // Enters [next, next + psns) into the ledger. True: these PSNs were sent before. `paced` of the
  // bytes leave here; the rest was asked for and comes from the peer, at the peer's pace.
  bool OnSent(uint32_t psns, uint64_t bytes, TimePoint now) {
    return OnSent(psns, bytes, bytes, now);
  }
  bool OnSent(uint32_t psns, uint64_t bytes, uint64_t paced, TimePoint now);

  // Everything before `upto` is acknowledged; una <= upto <= max. True when this is progress.
  // `unit` is the bytes that one PSN of a range stands for (READ responses come one by one). The
  // flow may go back to una by itself: ask next() anew. Marks on what acknowledges say nothing
  // about the way that this flow's data takes: CNPs do.
  bool OnAcked(Psn upto, uint32_t unit, TimePoint now);

  // Goes back to una; called on a NAK or a gap in responses. False when the retry budget is spent.
  // With nothing in flight the flow has gone back already: such a NAK is a late copy and costs
  // nothing.
  bool OnLoss(TimePoint now);
  // Goes back to una and starts small as after a loss, but spends no retry and tells congestion
  // control nothing: nobody has said that something was lost, only nothing has come.
  void Rewind();
  // The receiver is there but not ready: goes back to una, and the retry budget is whole again.
  void OnReceiverNotReady() {
    GoBack();
    retries_left_ = retry_count_;
  }
  // Starts the transport timer anew, e.g. after a receiver-not-ready wait.
  void RestartTimer(TimePoint now);

  // READ responses are data towards the same receiver: they pass the same gate, but take no PSN of
  // this flow and no place in its ledger. Nothing acknowledges them, so the gate is asked with what
  // has left in the current round, which is a round trip where a short one is known. The first
  // packet of a round is always allowed.
  bool MayAnswer(uint64_t bytes, TimePoint now) const;
  void OnAnswered(uint64_t bytes, TimePoint now);
  // When to ask again after a no.
  TimePoint NextAnswer(TimePoint now) const;

  void OnCnp(TimePoint now);
  LossVerdict OnDeadline(TimePoint now);
  TimePoint deadline() const;

 private:
  struct Record {
    Psn first;
    uint32_t psns = 0;
    uint64_t bytes = 0;
    TimePoint sent;
    bool again = false;  // retransmission: no RTT sample from it (Karn)
  };

  // What follows a loss starts small and doubles with every round trip: a receiver that could not
  // take a burst of a whole window cannot take it again, and when it drops the oldest packet of
  // every burst there is never any progress. A READ's packets are those of its answer.
  static constexpr uint32_t kAfterLoss = 16;
  // The longest round of answers: a late peer, which is what a long round trip mostly is, must not
  // slow down what nothing would speed up again.
  static constexpr Duration kAnswerRound = Microseconds(50);
  void SlowDown();
  void GoBack();
  uint32_t packets_in_flight() const { return static_cast<uint32_t>(PsnDistance(next_, una_)); }

  TimePoint ProbeDeadline() const;
  TimePoint TimeoutDeadline() const;

  // Every packet and every acknowledgement; three lines of memory, the last of congestion control.
  Psn una_;
  Psn next_;
  Psn max_;
  uint32_t allowed_ = 0;  // packets in flight at once, at most max_packets_
  uint64_t in_flight_ = 0;
  GrowingRing<Record> ledger_;
  TimePoint timer_start_;  // last progress, or first packet after idle
  TimePoint last_probe_;
  Duration timeout_;  // transport timer; 0: none
  uint32_t max_packets_ = FlowConfig{}.max_packets;
  RttEstimator rtt_;
  uint32_t rewinds_ = 0;
  uint32_t probes_ = 0;  // since the last progress
  uint32_t retries_left_ = 0;
  uint32_t retry_count_ = FlowConfig{}.retry_count;
  // The peer has missed una and said so; it will not say so again, so a repetition that is lost,
  // too, is found by asking soon.
  bool recovering_ = false;
  bool probing_ = false;  // a single packet was sent again and not yet answered
  CcState cc_;

  // Answers.
  uint64_t answered_ = 0;  // bytes in the current round
  TimePoint answer_round_end_;
};

}  // namespace rocegw::flow
