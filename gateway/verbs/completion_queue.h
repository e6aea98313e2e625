// SPDX-License-Identifier: Apache-2.0
// The one way to write a completion: a CQ's ring on one worker. The worker looks at `signal` after
// a burst and, when the client has armed the queue, sends the event. Owned by the worker that links
// it.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/shm/completion_ring.h"
#include "gateway/shm/sleepers.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

class CompletionQueue {
 public:
  explicit CompletionQueue(const CqConfig& config)
      : config_(config),
        ring_(config.ring, config.entries, &config.control->worker[config.worker_slot].consumer) {}

  // False when the client overran the queue; it stays broken then, as on hardware.
  bool Push(const rocegw_cqe& cqe) {
    if (overrun_ || !ring_.Push(cqe)) {
      overrun_ = true;
      return false;
    }
    if (!listed && fresh_list != nullptr) {
      listed = true;
      fresh_list->push_back(this);
    }
    fresh_solicited_ |= (cqe.flags & ROCEGW_CQE_SOLICITED) != 0 || cqe.status != 0;
    return true;
  }

  const CqConfig& config() const { return config_; }
  bool overrun() const { return overrun_; }

  // True when an event is due for what was pushed since the last call: the client had armed the
  // queue for it, and no other worker took the arming first.
  bool TakeEvent() {
    const bool solicited = fresh_solicited_;
    fresh_solicited_ = false;
    if (config_.event_fd < 0) return false;
    // The completion must be visible before the arm word is read: the client arms, then looks once
    // more.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t arm = __atomic_load_n(&config_.control->arm, __ATOMIC_ACQUIRE);
    if (arm == ROCEGW_CQ_UNARMED || (arm == ROCEGW_CQ_ARM_SOLICITED && !solicited)) return false;
    return __atomic_compare_exchange_n(&config_.control->arm, &arm, ROCEGW_CQ_UNARMED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }

  // Wakes who polls the queue and sleeps until there is something; after a burst, as TakeEvent.
  // Returns how many threads did.
  uint32_t WakePollers() {
    // The completion must be visible before the word is read: the client sets it, then looks once
    // more.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return shm::WakeSleepers(&config_.control->sleeping);
  }

  // The worker's own notes: queues written in this burst, and whether an event waits for room in
  // its channel.
  std::vector<CompletionQueue*>* fresh_list = nullptr;
  bool listed = false;
  bool event_pending = false;
  uint64_t events_sent = 0;

 private:
  CqConfig config_;
  shm::CompletionRing ring_;
  bool overrun_ = false;
  bool fresh_solicited_ = false;
};

}  // namespace rocegw::verbs
