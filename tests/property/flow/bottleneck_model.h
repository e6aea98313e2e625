// SPDX-License-Identifier: Apache-2.0
// Closed loop for congestion control: senders with the production algorithms, one bottleneck queue
// that marks, stamps and drops, and receivers that acknowledge every packet and send CNPs. Packets
// are values; time is virtual; equal seeds repeat a run exactly. It is separate from the simulator
// and much smaller: it has no queue pairs and no wire format.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <vector>

#include "gateway/flow/congestion.h"
#include "gateway/wire/congestion_hint.h"

namespace rocegw::testing {

struct BottleneckOptions {
  double gbps = 25;
  Duration base_rtt = Microseconds(20);
  uint32_t packet = 4096;
  uint64_t buffer = 64 << 20;
  // Marking: none below `mark_from`, all packets above `mark_to`, a share of mark_most just below.
  uint64_t mark_from = 0;  // both 0: no marks
  uint64_t mark_to = 0;
  double mark_most = 1;
  // Stamping of hints; both 0: none.
  uint64_t hint_low = 0;
  uint64_t hint_high = 0;
  Duration timer = Microseconds(16);  // senders wake at multiples of it, each in its own phase
  uint64_t seed = 1;
};

class Bottleneck {
 public:
  explicit Bottleneck(BottleneckOptions options);

  // Adds a sender that sends as much as allowed from `start` until `stop`. Returns its number.
  size_t AddSender(const flow::CcConfig& config, TimePoint start, TimePoint stop = kNever);
  // Changes a sender's algorithm while packets are in flight.
  void Switch(size_t sender, const flow::CcConfig& config);

  void RunUntil(TimePoint until);
  TimePoint now() const { return now_; }

  // Resets the counts.
  void StartCounting();
  uint64_t delivered(size_t sender) const { return senders_[sender].delivered; }
  uint64_t drops() const { return drops_; }
  uint64_t most_queued() const { return most_queued_; }
  const flow::CcState& state(size_t sender) const { return senders_[sender].cc; }
  // Returns the fairness of the senders [first, last) since StartCounting.
  double Jain(size_t first, size_t last) const;
  // Returns the share of the link's capacity that arrived.
  double Utilisation() const;

 private:
  enum class What : uint8_t { kPump, kQueue, kArrive, kAck, kCnp, kLoss, kDeadline };
  struct Event {
    TimePoint at;
    uint64_t order = 0;
    What what = What::kPump;
    uint32_t sender = 0;
    TimePoint sent;
    uint32_t epoch = 0;
    bool marked = false;
    uint8_t hint = 0;
    bool operator>(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Sender {
    flow::CcState cc;
    TimePoint start;
    TimePoint stop;
    uint64_t in_flight = 0;
    uint64_t delivered = 0;
    TimePoint wire_free;
    int64_t phase = 0;  // phase of its timer
    TimePoint pump_at = kNever;
    TimePoint deadline_at = kNever;
    TimePoint last_cnp{INT64_MIN / 2};
    TimePoint last_ack;
    double rtt = 0;
  };

  const flow::CcAlgorithm& Algorithm(const Sender& s) const { return flow::AlgorithmOf(s.cc.kind); }
  void Put(Event event);
  void Handle(const Event& event);
  void Pump(uint32_t index);
  void PumpAt(uint32_t index, TimePoint at);
  void Look(uint32_t index);
  void Enqueue(const Event& event);
  TimePoint Tick(const Sender& s, TimePoint at) const;
  Duration Serialisation() const {
    return Nanoseconds(static_cast<int64_t>(options_.packet * 8 / options_.gbps));
  }

  BottleneckOptions options_;
  std::mt19937_64 rng_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Sender> senders_;
  uint64_t order_ = 0;
  TimePoint now_{1000000};
  TimePoint queue_free_;
  TimePoint counting_since_;
  uint64_t drops_ = 0;
  uint64_t most_queued_ = 0;
};

}  // namespace rocegw::testing
