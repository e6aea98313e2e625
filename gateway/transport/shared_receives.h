// SPDX-License-Identifier: Apache-2.0
// The receives of a shared receive queue (IBTA 10.2.9) as its worker takes them: in the order in
// which they were posted, by whichever of its queue pairs has a message. All of those are on this
// worker, so nothing here is shared with another thread but the client's memory. A receive that was
// taken and will never complete goes back and is the next one.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/shm/work_queue.h"
#include "gateway/transport/outbox.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::transport {

class SharedReceives {
 public:
  using Look = shm::WorkQueue::Look;

  explicit SharedReceives(const verbs::SrqConfig& config);
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;

  const verbs::SrqConfig& config() const { return config_; }

  // Is there one to take? kFault: the client's index or slot is impossible.
  Look Check();
  // Of the one that Check found. Copy it out, its content may change.
  const uint8_t* Slot() const { return config_.slots + size_t{next_} * config_.stride; }
  uint32_t number() const { return next_; }
  // Takes it; its number.
  uint32_t Fetch();
  void GiveBack(uint32_t number) {
    returned_.push_back(number);
    --taken_;
  }

  // The same receives in a larger queue, at the same indices and slots.
  void Grow(uint32_t entries, const uint8_t* order, const uint8_t* slots);

  // An event is due once when fewer are posted than that; 0: none.
  void Arm(uint32_t limit) { limit_ = limit; }
  uint32_t limit() const { return limit_; }

  // To be taken, as far as the client's index is possible.
  uint32_t waiting() const { return static_cast<uint32_t>(returned_.size()) + order_.Waiting(); }
  uint64_t taken() const { return taken_; }
  uint64_t limit_events() const { return limit_events_; }
  // True: it is due now, and the limit is not armed any more.
  bool TakeLimitEvent();

 private:
  verbs::SrqConfig config_;
  uint32_t released_ = 0;  // entries of the order ring are free as soon as they are read
  shm::WorkQueue order_;
  std::vector<uint32_t> returned_;
  uint32_t next_ = 0;
  uint32_t limit_ = 0;
  uint64_t taken_ = 0;
  uint64_t limit_events_ = 0;
};

// The receives that a queue pair takes from: its own, or those of its shared receive queue.
// Check, then Slot and number, then Fetch.
struct PostedReceives {
  QpContext& qp;

  shm::WorkQueue::Look Check(Outbox& outbox) {
    const auto look = qp.shares_receives ? qp.srq->Check() : qp.rq().Check();
    if (look == shm::WorkQueue::Look::kFault)
      outbox.Fault(qp, "receive queue producer index out of range");
    return look;
  }
  const uint8_t* Slot() const { return qp.shares_receives ? qp.srq->Slot() : qp.rq().Slot(); }
  uint32_t number() const { return qp.shares_receives ? qp.srq->number() : qp.rq().fetched(); }
  uint32_t Fetch(Outbox& outbox) {
    if (!qp.shares_receives) return qp.rq().Fetch();
    const uint32_t number = qp.srq->Fetch();
    if (qp.srq->TakeLimitEvent()) outbox.Event(qp, verbs::AsyncEvent::kSrqLimitReached);
    return number;
  }
  // What was posted before a reset is gone; receives of others are not touched. False: the
  // client's index is impossible.
  bool Discard() { return qp.shares_receives || qp.rq().Discard(); }
  void TellLast(Outbox& outbox) {
    // IBTA 11.6.3.4: said once, when the queue pair takes no more and all that it took is complete.
    if (!qp.shares_receives || qp.last_receive_told) return;
    qp.last_receive_told = true;
    outbox.Event(qp, verbs::AsyncEvent::kLastWqeReached);
  }
};

}  // namespace rocegw::transport
