// SPDX-License-Identifier: Apache-2.0
// Consumer side of a completion queue: one ring per worker of the daemon, read in turn so that a
// busy worker cannot starve the others. Within one QP the order is the worker's order; between QPs
// of different workers there is none. Any thread; one poll at a time per queue. Completions of QPs
// that are no longer known here are dropped silently. When the daemon is gone, what it has not
// completed is completed here, as flushed.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/receive_ring.h"
#include "gateway/client/rings/send_ring.h"
#include "gateway/client/rings/shared_ring.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

// Completions of one QP in front of an index are from before it was reset and concern nobody.
struct PurgeMark {
  uint32_t until;
  bool active;
};

class CompletionRings;

// What the rings know about one QP, or about a shared receive queue of XRC, whose number is then
// its handle with this bit.
inline constexpr uint32_t kReceiver = 1u << 31;
struct QpRings {
  uint32_t handle;
  uint32_t qpn;
  uint32_t worker;  // whose rings carry its completions
  PurgeMark send_purge;
  PurgeMark receive_purge;
  // The last completion of a send that was polled was of the request in front of this index.
  uint32_t sends_polled;
  // By slot, the index of the request whose completion was polled; nullptr: they come in order.
  uint32_t* sends_polled_at;
  const CompletionRings* send_cq;
  const CompletionRings* receive_cq;
  SendRing send;
  ReceiveRing receive;
  SharedRing* shared;  // whose receives it completes instead; nullptr: its own
};

// The completion of that send was polled. Caller holds the CQ's lock.
inline void MarkSendPolled(QpRings& qp, uint32_t index) {
  qp.sends_polled = index + 1;
  if (qp.sends_polled_at != nullptr) qp.sends_polled_at[index & qp.send.mask] = index;
}

class CompletionRings {
 public:
  // `control` and `rings` as the reply to CREATE_CQ places them; `entries` is a power of two.
  // ENOMEM or 0.
  int Init(rocegw_cq_control* control, const void* rings, uint32_t entries, uint32_t workers);
  void Destroy();

  // QPs whose completions are delivered here: those of its sends, receives or both. Add: ENOMEM or
  // 0. May be called once for each kind.
  int Add(QpRings* qp, bool sends, bool receives);
  void Remove(const QpRings* qp);

  // Forgets the completions of the QP that lie in the queue now: those of sends, receives or both.
  // Slots of a shared receive queue are free then.
  void Purge(QpRings* qp, bool sends, bool receives);

  // As ibv_poll_cq: how many of `count` places in `wc` were filled. *quiet: there was nothing for
  // so long that the caller should look whether the daemon is still there.
  int Poll(int count, ibv_wc* wc, bool* quiet = nullptr, uint64_t* made_ns = nullptr);
  // As Poll, when it is not: requests without a completion are flushed, in order, each once. What
  // the daemon may still have written is not looked at any more.
  int Flush(int count, ibv_wc* wc);

  // Polls find nothing until Resume: the daemon moves the rings. What the queue holds then lies in
  // `rings`, nullptr: where it was.
  void Suspend();
  void Resume(const void* rings, uint32_t entries);

  // As ibv_req_notify_cq. A request for any completion is not weakened by a later one for solicited
  // ones.
  void Arm(bool solicited_only);

  // Empty polls in a row after which a poll gives the core away; 0 = never. `sleep`: the daemon
  // wakes who sleeps instead (idle_poller.h).
  void set_yield_after(uint32_t polls, bool sleep) {
    yield_after_ = polls;
    may_sleep_ = sleep;
  }
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
  bool AnyReady();
  void Rest();
  bool Convert(const rocegw_cqe& cqe, uint32_t index, ibv_wc* wc);
  static int FlushSends(QpRings& qp, int count, ibv_wc* wc);
  static int FlushShared(QpRings& qp, int count, ibv_wc* wc);
  static int FlushReceives(QpRings& qp, int count, ibv_wc* wc);
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
  bool may_sleep_;
  bool daemon_gone_;
  bool suspended_;
  QpRings** qps_;  // open addressing by QPN
  uint32_t qp_mask_;
  uint32_t qp_count_;
};

// Completions of the queue's sends may come in any order from now on. ENOMEM or 0.
int ExpectSendsInAnyOrder(QpRings& qp);

}  // namespace rocegw::client
