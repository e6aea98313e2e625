// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/drain.h"

namespace rocegw::session {

void Drain::Order(const DrainOrder& order, int64_t wall_ns) {
  if (order == order_) return;
  order_ = order;
  loop_.Cancel(timer_);
  timer_ = 0;
  if (order.drain && order.deadline.ns > 0) {
    timer_ = loop_.At(ControlLoop::Now() + order.deadline, [this] {
      timer_ = 0;
      at_deadline_(order_.on_deadline);
    });
  }
  Note(wall_ns);
}

void Drain::OrderLocally(bool drain, int64_t wall_ns) {
  local_ = drain;
  Note(wall_ns);
}

void Drain::Note(int64_t wall_ns) {
  if (!active()) {
    start_ns_ = 0;
  } else if (start_ns_ == 0) {
    start_ns_ = wall_ns;
  }
}

}  // namespace rocegw::session
