// SPDX-License-Identifier: Apache-2.0
// Emptying the gateway before it goes away: nothing new begins (attach, queue pairs, listeners,
// requests of peers), what is there goes on, and at the deadline happens what the operator chose.
// Asked for by the configuration, or here for the life of the process; either is enough. Empty
// means: no queue pairs, so nothing outstanding. Owner: session server, control thread.
#pragma once

#include <cstdint>
#include <functional>

#include "gateway/base/time.h"
#include "gateway/session/control_loop.h"

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

  // Of the configuration. The time begins when the gateway is told; the same again changes nothing.
  void Order(const DrainOrder& order, int64_t wall_ns);
  // Here, until taken back or the process ends.
  void OrderLocally(bool drain, int64_t wall_ns);

  bool active() const { return order_.drain || local_; }
  // Since 1970; 0: not draining.
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
