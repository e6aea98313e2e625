// SPDX-License-Identifier: Apache-2.0
// Receives of a shared receive queue (IBTA 10.2.9) as its worker takes them: in posting order, for
// whichever of its queue pairs has a message. All these queue pairs are on one worker, so only the
// client's memory is shared with another thread. A receive that was taken and will never complete
// goes back and is taken next.
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

  // Returns kReady if there is a receive to take; kFault: the client's index or slot is impossible.
  Look Check();
  // Returns the slot of the receive that Check found. The client may change it: copy it first.
  const uint8_t* Slot() const { return config_.slots + size_t{next_} * config_.stride; }
  uint32_t number() const { return next_; }
  // Takes the receive that Check found and returns its number.
  uint32_t Fetch();
  void GiveBack(uint32_t number) {
    returned_.push_back(number);
    --taken_;
  }

  // Moves the receives to a larger queue with the same indices and slots.
  void Grow(uint32_t entries, const uint8_t* order, const uint8_t* slots);

  // Arms the limit: one event is due when fewer receives than that are posted. 0: disarmed.
  void Arm(uint32_t limit) { limit_ = limit; }
  uint32_t limit() const { return limit_; }

  // Returns the number of posted receives, as far as the client's index is possible.
  uint32_t waiting() const { return static_cast<uint32_t>(returned_.size()) + order_.Waiting(); }
  uint64_t taken() const { return taken_; }
  uint64_t limit_events() const { return limit_events_; }
  // Returns true if the limit event is due now, and disarms the limit.
  bool TakeLimitEvent();
  // Writes or reads the state; the reader is made with the same configuration.
  void HandOver(hand_over::StateStream& state);

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

// Receives that a queue pair takes from: its own, or those of its shared receive queue. Order of
// calls: Check, then Slot and number, then Fetch.
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
  // Discards what was posted before a reset; receives of a shared queue stay. Returns false if the
  // client's index is impossible.
  bool Discard() { return qp.shares_receives || qp.rq().Discard(); }
  void ReportLast(Outbox& outbox) {
    // IBTA 11.6.3.4: reported once, when the queue pair takes no more receives and all that it took
    // are complete.
    if (!qp.shares_receives || qp.last_receive_reported) return;
    qp.last_receive_reported = true;
    outbox.Event(qp, verbs::AsyncEvent::kLastWqeReached);
  }
};

}  // namespace rocegw::transport
