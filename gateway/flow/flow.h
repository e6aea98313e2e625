// SPDX-License-Identifier: Apache-2.0
// A flow: one PSN space towards one receiver. It knows what is in flight, what counts as lost, and
// how much may be sent. It handles bytes, PSNs and times, neither packet contents nor work
// requests. A native RC queue pair owns one. Loss recovery is Go-Back-N with a tail probe, because
// native peers support nothing else (IBTA 9.7.5). Belongs to one worker.
//
// Invariant: una <= next <= max. [una, next) is in the ledger; [next, max) was sent before and must
// be sent again.
#pragma once

#include <cstdint>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/congestion.h"
#include "gateway/flow/rtt.h"

namespace rocegw::flow {

struct FlowConfig {
  CcConfig cc;
  uint32_t max_packets = 1024;  // limit of packets in flight
  Duration timeout;             // transport timer; 0: none
  uint32_t retry_count = 7;
};

// Returns 4.096 us * 2^code, or 0 for code 0 (IBTA 9.9.2.1.1).
Duration TransportTimeout(uint8_t code);

enum class LossVerdict : uint8_t {
  kNothing,
  kProbe,         // send the oldest packet once more, with a request for an acknowledgement
  kRewind,        // the flow went back to una: send again from there
  kRetriesSpent,  // no progress in the whole retry budget
};

class Flow {
 public:
  // Starts congestion control, so that answers may leave. Start restarts it.
  void Open(const CcConfig& cc, TimePoint now);
  void Start(const FlowConfig& config, Psn first, TimePoint now);
  // Sets new limits while the flow runs (modify in SQD, RTR to RTS).
  void Configure(const FlowConfig& config);
  // Switches the algorithm or its parameters while the flow runs. What is in flight stays, and the
  // new algorithm continues at the rate or window that the old one had reached.
  void SwitchCc(const CcConfig& cc, TimePoint now);
  CcKind cc_kind() const { return cc_.kind; }
  // Returns true if packets are to be sent with ECT(0).
  bool uses_marks() const { return AlgorithmOf(cc_.kind).uses_marks; }
  // Returns the bytes that congestion control allows per round trip.
  uint64_t cc_window() const { return AlgorithmOf(cc_.kind).window(cc_, rtt_.smoothed()); }

  Psn una() const { return una_; }
  Psn next() const { return next_; }
  Psn max() const { return max_; }
  bool idle() const { return ledger_.empty(); }
  uint64_t in_flight() const { return in_flight_; }
  const RttEstimator& rtt() const { return rtt_; }
  uint32_t retries_left() const { return retries_left_; }
  // Returns how often the flow went back to una. A change tells the requester to map PSNs to
  // requests anew.
  uint32_t rewinds() const { return rewinds_; }

  // Returns true if `bytes` more may be sent now. One packet is always allowed when nothing is in
  // flight.
  bool MaySend(uint64_t bytes, TimePoint now) const;
  // Like MaySend, but without that exception.
  bool HasRoom(uint64_t bytes, TimePoint now) const;
  // Returns when to ask again if pacing made MaySend refuse; kNever: an acknowledgement must come
  // first.
  TimePoint earliest() const;

  // Records [next, next + psns) in the ledger. Returns true if these PSNs were sent before. `paced`
  // bytes leave this port; the rest is READ data, which the peer paces.
  bool OnSent(uint32_t psns, uint64_t bytes, TimePoint now) {
    return OnSent(psns, bytes, bytes, now);
  }
  bool OnSent(uint32_t psns, uint64_t bytes, uint64_t paced, TimePoint now);

  // Acknowledges all PSNs before `upto`; una <= upto <= max. Returns true if that is progress.
  // `unit` is the bytes per PSN of a range, because READ responses acknowledge one PSN at a time.
  // The flow may go back to una by itself, so call next() again. Marks on acknowledgements are
  // ignored: they describe the reverse path. CNPs describe this flow's path.
  bool OnAcked(Psn upto, uint32_t unit, TimePoint now);

  // Goes back to una after a NAK or a gap in responses. Returns false if the retry budget is spent.
  // With nothing in flight the flow has already gone back, so the NAK is a late copy and costs no
  // retry.
  bool OnLoss(TimePoint now);
  // Goes back to una with a small window, but spends no retry and reports no loss to congestion
  // control: the peer has not reported a loss, it was only silent.
  void Rewind();
  // Goes back to una because the receiver is not ready, and restores the whole retry budget.
  void OnReceiverNotReady() {
    GoBack();
    retries_left_ = retry_count_;
  }
  // Restarts the transport timer, for example after an RNR wait.
  void RestartTimer(TimePoint now);

  // READ responses go to the same receiver and pass the same gate, but use no PSN of this flow and
  // no ledger entry. No acknowledgement covers them, so the gate counts what left in the current
  // round: a short round trip if known, else kAnswerRound. The first packet of a round is always
  // allowed.
  bool MayAnswer(uint64_t bytes, TimePoint now) const;
  void OnAnswered(uint64_t bytes, TimePoint now);
  // Returns when to ask again after a refusal.
  TimePoint NextAnswer(TimePoint now) const;

  void OnCnp(TimePoint now);
  LossVerdict OnDeadline(TimePoint now);
  TimePoint deadline() const;

  // Writes or reads the state; `profile` is the one that the flow uses from now on.
  void HandOver(hand_over::StateStream& state, const CcProfile& profile);

 private:
  struct Record {
    Psn first;
    uint32_t psns = 0;
    uint64_t bytes = 0;
    TimePoint sent;
    bool again = false;  // retransmission: no RTT sample from it (Karn's algorithm)
  };

  // Packets in flight after a loss; doubles with every round trip. A receiver that could not take a
  // burst of a whole window would drop it again, and if it drops the oldest packet of every burst
  // there is never progress. A READ counts with the packets of its response.
  static constexpr uint32_t kAfterLoss = 16;
  // Longest round of READ responses. A long measured round trip mostly comes from a late peer and
  // must not slow responses down, because nothing would speed them up again.
  static constexpr Duration kAnswerRound = Microseconds(50);
  void SlowDown();
  void GoBack();
  uint32_t packets_in_flight() const { return static_cast<uint32_t>(PsnDistance(next_, una_)); }

  TimePoint ProbeDeadline() const;
  TimePoint TimeoutDeadline() const;

  // Used by every packet and every acknowledgement. With the requester's own fields in front these
  // fill four cache lines.
  Psn una_;
  Psn next_;
  Psn max_;
  uint32_t allowed_ = 0;  // packets in flight at once, at most max_packets_
  uint64_t in_flight_ = 0;
  // Many flows have one packet in flight at a time.
  GrowingRing<Record, 1> ledger_;
  TimePoint timer_start_;  // last progress, or first packet after idle time
  TimePoint last_probe_;
  Duration timeout_;  // transport timer; 0: none
  uint32_t max_packets_ = FlowConfig{}.max_packets;
  RttEstimator rtt_;
  uint32_t rewinds_ = 0;
  uint32_t probes_ = 0;  // since the last progress
  uint32_t retries_left_ = 0;
  uint32_t retry_count_ = FlowConfig{}.retry_count;
  // The peer reported that una is missing and will not report it again. If the repetition is lost
  // as well, an early probe finds out.
  bool recovering_ = false;
  bool probing_ = false;  // the oldest packet was sent again and is unanswered
  CcState cc_;

  // READ responses:
  uint64_t answered_ = 0;  // bytes in the current round
  TimePoint answer_round_end_;
};

}  // namespace rocegw::flow
