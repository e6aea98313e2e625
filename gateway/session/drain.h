// SPDX-License-Identifier: Apache-2.0
// Drain of the gateway before it stops: no attach, queue pair, listener or peer's request begins,
// existing ones continue, and at the deadline the operator's choice takes effect. Ordered by the
// configuration, or locally for this run of the process; either suffices. Drained means: no queue
// pairs, so nothing is outstanding. Owner: session server, control thread.
#pragma once

#include <cstdint>
#include <functional>

#include "gateway/base/time.h"
#include "gateway/loop/control_loop.h"

namespace rocegw::session {

enum class OnDeadline : uint8_t { kKeep, kDisconnect, kAbort };

struct DrainOrder {
  bool drain = false;
  Duration deadline;  // 0: none
  OnDeadline on_deadline = OnDeadline::kKeep;
  bool operator==(const DrainOrder&) const = default;
};

class Drain {
 public:
  Drain(ControlLoop& loop, std::function<void(OnDeadline)> at_deadline)
      : loop_(loop), at_deadline_(std::move(at_deadline)) {}
  ~Drain() { loop_.Cancel(timer_); }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  // Sets the configuration's order. Time counts from the order's arrival; the same order again
  // changes nothing.
  void Order(const DrainOrder& order, int64_t wall_ns);
  // Starts or ends a local drain, for this run of the process.
  void OrderLocally(bool drain, int64_t wall_ns);

  bool ordered_locally() const { return local_; }
  bool active() const { return order_.drain || local_; }
  // Returns the start in ns since 1970; 0: not draining.
  int64_t start_ns() const { return start_ns_; }

 private:
  void Note(int64_t wall_ns);

  ControlLoop& loop_;
  const std::function<void(OnDeadline)> at_deadline_;
  DrainOrder order_;
  bool local_ = false;
  int64_t start_ns_ = 0;
  ControlLoop::TimerId timer_ = 0;
};

}  // namespace rocegw::session
