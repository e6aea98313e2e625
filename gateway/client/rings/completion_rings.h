// SPDX-License-Identifier: Apache-2.0
// Consumer side of a completion queue: one ring per worker of the daemon, read in turn so that a
// busy worker cannot starve the others. Within one QP the order is the worker's order; between QPs
// of different workers there is none. Any thread; one poll at a time per queue. Completions of QPs
// that are no longer known here are dropped silently.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/receive_ring.h"
#include "gateway/client/rings/send_ring.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

// Completions of one QP in front of an index are from before it was reset and concern nobody.
struct PurgeMark {
  uint32_t until;
  bool active;
};

// What the rings know about one QP.
struct QpRings {
  uint32_t handle;
  uint32_t qpn;
  uint32_t worker;  // whose rings carry its completions
  PurgeMark send_purge;
  PurgeMark receive_purge;
  SendRing send;
  ReceiveRing receive;
};

class CompletionRings {
 public:
  // `control` and `rings` as the reply to CREATE_CQ places them; `entries` is a power of two.
  // ENOMEM or 0.
  int Init(rocegw_cq_control* control, const void* rings, uint32_t entries, uint32_t workers);
  void Destroy();

  // QPs whose completions are delivered here. Add: ENOMEM or 0. A QP that uses the queue twice is
  // added once.
  int Add(QpRings* qp);
  void Remove(const QpRings* qp);

  // Forgets the completions of the QP that lie in the queue now: those of sends, receives or both.
  void Purge(QpRings* qp, bool sends, bool receives);

  // As ibv_poll_cq: how many of `count` places in `wc` were filled.
  int Poll(int count, ibv_wc* wc);

  // As ibv_req_notify_cq. A request for any completion is not weakened by a later one for solicited
  // ones.
  void Arm(bool solicited_only);

  // Empty polls in a row after which a poll gives the core away; 0 = never.
  void set_yield_after(uint32_t polls) { yield_after_ = polls; }
  uint32_t entries() const { return mask_ + 1; }
  uint32_t workers() const { return workers_; }
  void ResetLock() { lock_.Reset(); }

  // Calls visit(QpRings&) for every QP of this queue, under its lock.
  template <typename Visit>
  void ForEachQp(Visit visit) {
    SpinGuard guard(lock_);
    for (uint32_t i = 0; qps_ != nullptr && i <= qp_mask_; ++i) {
      if (qps_[i] != nullptr) visit(*qps_[i]);
    }
  }

 private:
  const rocegw_cqe* At(uint32_t worker, uint32_t index) const;
  bool Convert(const rocegw_cqe& cqe, uint32_t index, ibv_wc* wc);
  QpRings* FindQp(uint32_t qpn) const;
  static void Place(QpRings** table, uint32_t mask, QpRings* qp);

  SpinLock lock_;
  rocegw_cq_control* control_;
  const uint8_t* rings_;
  uint32_t* consumer_;  // per worker
  uint32_t mask_;
  uint32_t workers_;
  uint32_t next_worker_;
  uint32_t empty_polls_;
  uint32_t yield_after_;
  QpRings** qps_;  // open addressing by QPN
  uint32_t qp_mask_;
  uint32_t qp_count_;
};

}  // namespace rocegw::client
