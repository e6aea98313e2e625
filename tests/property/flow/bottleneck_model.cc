// SPDX-License-Identifier: Apache-2.0
#include "tests/property/flow/bottleneck_model.h"

#include <algorithm>

namespace rocegw::testing {

Bottleneck::Bottleneck(BottleneckOptions options) : options_(options), rng_(options.seed) {
  counting_since_ = queue_free_ = now_;
}

void Bottleneck::Put(Event event) {
  event.order = order_++;
  events_.push(event);
}

size_t Bottleneck::AddSender(const flow::CcConfig& config, TimePoint start, TimePoint stop) {
  Sender& s = senders_.emplace_back();
  s.start = start;
  s.stop = stop;
  s.wire_free = start;
  s.phase = static_cast<int64_t>(rng_() % static_cast<uint64_t>(options_.timer.ns));
  s.cc.kind = config.kind;
  Algorithm(s).init(s.cc, config, start);
  const auto index = static_cast<uint32_t>(senders_.size() - 1);
  PumpAt(index, start);
  return index;
}

void Bottleneck::Switch(size_t sender, const flow::CcConfig& config) {
  Sender& s = senders_[sender];
  const Duration rtt{static_cast<int64_t>(s.rtt)};
  const flow::CcOperatingPoint point{Algorithm(s).window(s.cc, rtt), rtt};
  s.cc.kind = config.kind;
  Algorithm(s).init(s.cc, config, now_);
  Algorithm(s).take_over(s.cc, point, now_);
  Look(static_cast<uint32_t>(sender));
}

void Bottleneck::StartCounting() {
  counting_since_ = now_;
  for (Sender& s : senders_) s.delivered = 0;
  drops_ = most_queued_ = 0;
}

double Bottleneck::Jain(size_t first, size_t last) const {
  double sum = 0;
  double squares = 0;
  for (size_t i = first; i < last; ++i) {
    const auto x = static_cast<double>(senders_[i].delivered);
    sum += x;
    squares += x * x;
  }
  return squares == 0 ? 0 : sum * sum / (static_cast<double>(last - first) * squares);
}

double Bottleneck::Utilisation() const {
  double sum = 0;
  for (const Sender& s : senders_) sum += static_cast<double>(s.delivered);
  return sum * 8 / (options_.gbps * static_cast<double>((now_ - counting_since_).ns));
}

void Bottleneck::RunUntil(TimePoint until) {
  while (!events_.empty() && events_.top().at <= until) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    Handle(event);
  }
  now_ = until;
}

TimePoint Bottleneck::Tick(const Sender& s, TimePoint at) const {
  const int64_t width = options_.timer.ns;
  return {(at.ns - s.phase + width - 1) / width * width + s.phase};
}

void Bottleneck::PumpAt(uint32_t index, TimePoint at) {
  Sender& s = senders_[index];
  if (at >= s.pump_at) return;
  s.pump_at = at;
  Put({.at = at, .what = What::kPump, .sender = index});
}

// After any event: send what is allowed, then arm the next deadline.
void Bottleneck::Look(uint32_t index) {
  Pump(index);
  Sender& s = senders_[index];
  const TimePoint deadline = Algorithm(s).deadline(s.cc);
  if (deadline == kNever || deadline >= s.deadline_at) return;
  s.deadline_at = deadline;
  Put({.at = Tick(s, std::max(deadline, now_)), .what = What::kDeadline, .sender = index});
}

void Bottleneck::Pump(uint32_t index) {
  Sender& s = senders_[index];
  if (now_ < s.start || now_ >= s.stop) return;
  for (;;) {
    const flow::SendGate gate = Algorithm(s).gate(s.cc, s.in_flight);
    if (gate.earliest > now_) {
      PumpAt(index, Tick(s, gate.earliest));
      return;
    }
    if (s.in_flight != 0 && gate.bytes < options_.packet) return;
    // A port accepts two packets ahead of the wire.
    if (s.wire_free > now_ + Serialisation() * 2) {
      PumpAt(index, s.wire_free - Serialisation());
      return;
    }
    s.wire_free = std::max(s.wire_free, now_) + Serialisation();
    s.in_flight += options_.packet;
    Algorithm(s).on_sent(s.cc, options_.packet, now_);
    Put({.at = s.wire_free + options_.base_rtt / 4,
         .what = What::kQueue,
         .sender = index,
         .sent = now_,
         .hint = wire::MakeHint(true)});
  }
}

void Bottleneck::Enqueue(const Event& event) {
  queue_free_ = std::max(queue_free_, now_);
  const auto queued =
      static_cast<uint64_t>(static_cast<double>((queue_free_ - now_).ns) * options_.gbps / 8);
  most_queued_ = std::max(most_queued_, queued);
  Event next = event;
  if (queued + options_.packet > options_.buffer) {
    ++drops_;
    next.what = What::kLoss;
    next.at = now_ + options_.base_rtt + (queue_free_ - now_);
    Put(next);
    return;
  }
  if (options_.mark_to != 0 && queued > options_.mark_from) {
    const double share = static_cast<double>(queued - options_.mark_from) /
                         static_cast<double>(options_.mark_to - options_.mark_from);
    const double chance = queued >= options_.mark_to ? 1 : share * options_.mark_most;
    next.marked = std::uniform_real_distribution<double>(0, 1)(rng_) < chance;
  }
  if (options_.hint_high != 0)
    next.hint = wire::RaiseHint(next.hint, queued, options_.hint_low, options_.hint_high);
  queue_free_ = queue_free_ + Serialisation();
  next.what = What::kArrive;
  next.at = queue_free_ + options_.base_rtt / 4;
  Put(next);
}

void Bottleneck::Handle(const Event& event) {
  Sender& s = senders_[event.sender];
  switch (event.what) {
    case What::kPump:
      s.pump_at = kNever;
      Look(event.sender);
      return;
    case What::kQueue:
      Enqueue(event);
      return;
    case What::kArrive: {
      s.delivered += options_.packet;
      Event back = event;
      back.at = now_ + options_.base_rtt / 2;
      if (event.marked && now_ - s.last_cnp >= s.cc.profile->cnp_interval) {
        s.last_cnp = now_;
        back.what = What::kCnp;
        Put(back);
      }
      wire::HintMeter meter;
      meter.OnFrame(event.hint, event.marked, options_.packet);
      back.hint = meter.Take();
      back.what = What::kAck;
      Put(back);
      return;
    }
    case What::kAck: {
      const Duration rtt = now_ - event.sent;
      s.rtt = s.rtt == 0 ? static_cast<double>(rtt.ns)
                         : s.rtt + (static_cast<double>(rtt.ns) - s.rtt) / 8;
      const flow::CcFeedback feedback{.acked_bytes = options_.packet,
                                      .marked_bytes = event.marked ? options_.packet : 0u,
                                      .in_flight_before = s.in_flight,
                                      .rtt = rtt,
                                      .hint = event.hint};
      s.in_flight -= options_.packet;
      Algorithm(s).on_feedback(s.cc, feedback, now_);
      Look(event.sender);
      return;
    }
    case What::kCnp:
      Algorithm(s).on_cnp(s.cc, now_);
      Look(event.sender);
      return;
    case What::kLoss:
      s.in_flight -= options_.packet;
      Algorithm(s).on_loss(s.cc, now_);
      Look(event.sender);
      return;
    case What::kDeadline:
      s.deadline_at = kNever;
      if (Algorithm(s).deadline(s.cc) <= now_) Algorithm(s).on_deadline(s.cc, now_);
      Look(event.sender);
      return;
  }
}

}  // namespace rocegw::testing
