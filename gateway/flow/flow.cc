// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/flow.h"

#include <algorithm>

namespace rocegw::flow {

Duration TransportTimeout(uint8_t code) {
  return code == 0 ? Duration{} : Duration{int64_t{4096} << std::min<int>(code, 31)};
}

void Flow::Open(const CcConfig& cc, TimePoint now) {
  cc_.kind = cc.kind;
  AlgorithmOf(cc_.kind).init(cc_, cc, now);
  answered_ = 0;
  answer_round_end_ = now;
}

void Flow::Start(const FlowConfig& config, Psn first, TimePoint now) {
  Configure(config);
  una_ = next_ = max_ = first;
  ledger_.clear();
  in_flight_ = 0;
  rtt_ = RttEstimator();
  probes_ = 0;
  probing_ = recovering_ = false;
  timer_start_ = last_probe_ = now;
  Open(config.cc, now);
}

void Flow::Configure(const FlowConfig& config) {
  timeout_ = config.timeout;
  retries_left_ = retry_count_ = config.retry_count;
  allowed_ = max_packets_ = config.max_packets;
}

void Flow::SwitchCc(const CcConfig& cc, TimePoint now) {
  const CcOperatingPoint point{cc_window(), rtt_.smoothed()};
  cc_.kind = cc.kind;
  AlgorithmOf(cc_.kind).init(cc_, cc, now);
  AlgorithmOf(cc_.kind).take_over(cc_, point, now);
}

bool Flow::HasRoom(uint64_t bytes, TimePoint now) const {
  if (packets_in_flight() >= allowed_) return false;
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, in_flight_);
  return gate.earliest <= now && bytes <= gate.bytes;
}

bool Flow::MaySend(uint64_t bytes, TimePoint now) const {
  if (!ledger_.empty()) return HasRoom(bytes, now);
  return AlgorithmOf(cc_.kind).gate(cc_, in_flight_).earliest <= now;
}

TimePoint Flow::earliest() const {
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, in_flight_);
  return gate.earliest.ns > 0 ? gate.earliest : kNever;
}

bool Flow::MayAnswer(uint64_t bytes, TimePoint now) const {
  const uint64_t answered = now < answer_round_end_ ? answered_ : 0;
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, answered);
  return gate.earliest <= now && (answered == 0 || bytes <= gate.bytes);
}

void Flow::OnAnswered(uint64_t bytes, TimePoint now) {
  if (now >= answer_round_end_) {
    // The sender of READ responses gets no acknowledgements, so without a CNP it counts the round
    // as delivered.
    if (answered_ != 0) {
      const CcFeedback feedback{.acked_bytes = answered_, .in_flight_before = answered_};
      AlgorithmOf(cc_.kind).on_feedback(cc_, feedback, now);
    }
    answered_ = 0;
    answer_round_end_ =
        now + (rtt_.has_sample() ? std::min(rtt_.minimum(), kAnswerRound) : kAnswerRound);
  }
  answered_ += bytes;
  AlgorithmOf(cc_.kind).on_sent(cc_, bytes, now);
}

TimePoint Flow::NextAnswer(TimePoint now) const {
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, answered_);
  return gate.earliest > now ? gate.earliest : answer_round_end_;
}

bool Flow::OnSent(uint32_t psns, uint64_t bytes, uint64_t paced, TimePoint now) {
  const bool again = PsnBefore(next_, max_);
  // The timer restarts only after idle time: a rewound flow has made no progress.
  if (una_ == max_) RestartTimer(now);
  // Filled in place: building a record elsewhere and copying it costs more than the rest of this
  // function.
  Record& record = ledger_.Extend();
  record.first = next_;
  record.psns = psns;
  record.bytes = bytes;
  record.sent = now;
  record.again = again;
  in_flight_ += bytes;
  next_ = next_ + psns;
  if (PsnAfter(next_, max_)) max_ = next_;
  AlgorithmOf(cc_.kind).on_sent(cc_, paced, now);
  return again;
}

bool Flow::OnAcked(Psn upto, uint32_t unit, TimePoint now) {
  if (!PsnAfter(upto, una_)) return false;
  CcFeedback feedback{.in_flight_before = in_flight_};
  while (!ledger_.empty() && PsnBefore(ledger_.front().first, upto)) {
    Record& record = ledger_.front();
    const auto acked = static_cast<uint32_t>(PsnDistance(upto, record.first));
    // The newest acknowledged packet gives the round trip sample. A range that is answered piece by
    // piece gives one with its first piece.
    if (!record.again) feedback.rtt = now - record.sent;
    if (acked < record.psns) {
      const uint64_t bytes = std::min<uint64_t>(record.bytes, uint64_t{acked} * unit);
      record.first = upto;
      record.psns -= acked;
      record.bytes -= bytes;
      record.again = true;
      in_flight_ -= bytes;
      feedback.acked_bytes += bytes;
      break;
    }
    in_flight_ -= record.bytes;
    feedback.acked_bytes += record.bytes;
    ledger_.pop_front();
  }
  const auto progress = static_cast<uint32_t>(PsnDistance(upto, una_));
  allowed_ = std::min(allowed_ + progress, max_packets_);
  una_ = upto;
  // After a rewind, an acknowledgement may lie beyond next.
  if (PsnBefore(next_, una_)) next_ = una_;
  retries_left_ = retry_count_;
  probes_ = 0;
  recovering_ = false;
  timer_start_ = last_probe_ = now;
  // The answer to a probe measures how long the loss went unnoticed, not a round trip.
  if (probing_) feedback.rtt = {};
  if (feedback.rtt.ns > 0) rtt_.OnSample(feedback.rtt);
  AlgorithmOf(cc_.kind).on_feedback(cc_, feedback, now);
  // The peer has answered a probe of the oldest packet. It drops packets behind a gap, so it does
  // not have what it does not acknowledge now.
  if (probing_ && una_ != max_) Rewind();
  probing_ = false;
  return true;
}

void Flow::Rewind() {
  SlowDown();
  GoBack();
}

void Flow::GoBack() {
  probing_ = false;
  ++rewinds_;
  ledger_.clear();
  in_flight_ = 0;
  next_ = una_;
}

bool Flow::OnLoss(TimePoint now) {
  if (ledger_.empty()) {
    RestartTimer(now);
    return true;
  }
  if (retries_left_ == 0) return false;
  --retries_left_;
  AlgorithmOf(cc_.kind).on_loss(cc_, now);
  Rewind();
  RestartTimer(now);
  recovering_ = true;
  return true;
}

void Flow::RestartTimer(TimePoint now) { timer_start_ = last_probe_ = now; }

void Flow::OnCnp(TimePoint now) { AlgorithmOf(cc_.kind).on_cnp(cc_, now); }

TimePoint Flow::ProbeDeadline() const {
  const Duration first = recovering_ ? rtt_.RecoveryTimeout() : rtt_.ProbeTimeout();
  const Duration wait = first * (int64_t{1} << std::min(probes_, 6u));
  return last_probe_ + wait;
}

TimePoint Flow::TimeoutDeadline() const {
  return timeout_.ns == 0 ? kNever : timer_start_ + timeout_;
}

TimePoint Flow::deadline() const {
  const TimePoint cc = AlgorithmOf(cc_.kind).deadline(cc_);
  if (una_ == max_) return cc;
  return Earlier(cc, Earlier(ProbeDeadline(), TimeoutDeadline()));
}

LossVerdict Flow::OnDeadline(TimePoint now) {
  const CcAlgorithm& cc = AlgorithmOf(cc_.kind);
  if (cc.deadline(cc_) <= now) cc.on_deadline(cc_, now);
  if (una_ == max_) return LossVerdict::kNothing;
  if (TimeoutDeadline() <= now) {
    const bool goes_on = OnLoss(now);
    // The timeout came without a message from the peer.
    recovering_ = false;
    return goes_on ? LossVerdict::kRewind : LossVerdict::kRetriesSpent;
  }
  if (ProbeDeadline() > now) return LossVerdict::kNothing;
  last_probe_ = now;
  // The first probe is one packet. If it stays unanswered, more than the tail is missing: go back,
  // but spend no retry. Retries follow the transport timer, whose length the application chose.
  if (probes_++ == 0) {
    probing_ = true;
    return LossVerdict::kProbe;
  }
  Rewind();
  return LossVerdict::kRewind;
}

void Flow::SlowDown() { allowed_ = std::min(kAfterLoss, max_packets_); }

}  // namespace rocegw::flow
