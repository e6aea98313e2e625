// SPDX-License-Identifier: Apache-2.0
// Consumer side of a completion queue: one ring per worker of the daemon, read round-robin so that
// a busy worker cannot starve the others. Within a QP the order is the worker's; between QPs of
// different workers there is none. Any thread; one poll at a time per queue. Completions of unknown
// QPs are dropped. When the daemon is lost, open requests are completed here, as flushed.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/idle_poller.h"
#include "gateway/client/rings/receive_ring.h"
#include "gateway/client/rings/send_ring.h"
#include "gateway/client/rings/shared_ring.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

// Purge mark: completions of one QP before an index are from before its reset and are dropped.
struct PurgeMark {
  uint32_t until;
  bool active;
};

class CompletionRings;

// Flag of the key of an XRC shared receive queue: its handle with this bit. Other entries are QPNs.
inline constexpr uint32_t kReceiver = 1u << 31;
struct QpRings {
  uint32_t handle;
  uint32_t qpn;
  uint32_t worker;  // worker whose rings carry its completions
  PurgeMark send_purge;
  PurgeMark receive_purge;
  // Index behind the request of the last polled send completion.
  uint32_t sends_polled;
  // Request index per slot of the polled completion; nullptr: sends complete in order.
  uint32_t* sends_polled_at;
  const CompletionRings* send_cq;
  const CompletionRings* receive_cq;
  SendRing send;
  ReceiveRing receive;
  SharedRing* shared;  // shared receive queue of its receives; nullptr: its own
};

// Records a polled send completion. Caller holds the CQ's lock.
inline void MarkSendPolled(QpRings& qp, uint32_t index) {
  qp.sends_polled = index + 1;
  if (qp.sends_polled_at != nullptr) qp.sends_polled_at[index & qp.send.mask] = index;
}

class CompletionRings {
 public:
  // Initialises from the reply to CREATE_CQ, which places `control` and `rings`; `entries` is a
  // power of two. ENOMEM or 0.
  int Init(rocegw_cq_control* control, const void* rings, uint32_t entries, uint32_t workers);
  void Destroy();

  // Adds a QP that completes its sends, receives or both here; may be called once per kind. ENOMEM
  // or 0.
  int Add(QpRings* qp, bool sends, bool receives);
  void Remove(const QpRings* qp);

  // Drops the QP's completions that are in the queue now: those of sends, receives or both. Frees
  // their slots of a shared receive queue.
  void Purge(QpRings* qp, bool sends, bool receives);

  // Implements ibv_poll_cq: returns how many of the `count` entries of `wc` were filled. *quiet:
  // nothing came for so long that the caller should check the daemon.
  int Poll(int count, ibv_wc* wc, bool* quiet = nullptr, uint64_t* made_ns = nullptr);
  // Polls after the daemon is lost: flushes requests without a completion, in order, each once.
  // Unread output of the daemon is ignored.
  int Flush(int count, ibv_wc* wc);

  // Makes polls return nothing until Resume, while the daemon moves the rings. `rings` in Resume:
  // new place; nullptr: unchanged.
  void Suspend();
  void Resume(const void* rings, uint32_t entries);

  // Implements ibv_req_notify_cq. A request for any completion is not weakened by a later one for
  // solicited ones.
  void Arm(bool solicited_only);

  // Sets what polls do that find nothing. `sleep`: the daemon wakes sleeping threads
  // (idle_poller.h).
  void set_polling(const Polling& polling, bool sleep) {
    polling_ = polling;
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
  uint32_t* consumer_;  // next entry, per worker
  uint32_t mask_;
  uint32_t workers_;
  uint32_t next_worker_;
  uint32_t empty_polls_;
  Polling polling_;
  bool may_sleep_;
  bool daemon_gone_;
  bool suspended_;
  QpRings** qps_;  // open addressing by QPN
  uint32_t qp_mask_;
  uint32_t qp_count_;
};

// Lets the QP's sends complete in any order from now on. ENOMEM or 0.
int ExpectSendsInAnyOrder(QpRings& qp);

}  // namespace rocegw::client
