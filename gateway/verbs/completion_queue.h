// SPDX-License-Identifier: Apache-2.0
// The one way to write a completion: a CQ's ring on one worker. The worker looks at `signal` after
// a burst and, when the client has armed the queue, sends the event. Owned by the worker that links
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/shm/completion_ring.h"
#include "gateway/shm/sleepers.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::verbs {

// What a queue's rings on all workers count together for moderation.
struct CqModeration {
  std::atomic<uint32_t> waiting{0};  // completions since the client armed the queue
  std::atomic<bool> solicited{false};
};

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
    ++fresh_count_;
    return true;
  }

  // Goes on in another ring; false: the client has not taken more than `most`.
  bool Resize(rocegw_cqe* ring, uint32_t entries, uint32_t most) {
    return ring_.MoveTo(ring, entries, most);
  }

  // Events come when so many completions wait, or when the first has waited for so long; neither:
  // for each. What waits now is looked at again with the next TakeEvent.
  void Moderate(CqModeration& moderation, uint32_t count, Duration period) {
    moderation_ = &moderation;
    count_ = count;
    period_ = period;
  }

  const CqConfig& config() const { return config_; }
  bool overrun() const { return overrun_; }
  // It is overrun, and nobody was told before this call.
  bool TakeOverrun() { return overrun_ && !std::exchange(overrun_told_, true); }

  // True when an event is due for what was pushed since the last call: the client had armed the
  // queue for it, and no other worker took the arming first. With moderation it may be due later
  // only: at `due`.
  bool TakeEvent(TimePoint now) {
    const bool solicited = std::exchange(fresh_solicited_, false);
    const uint32_t fresh = std::exchange(fresh_count_, 0);
    if (config_.event_fd < 0) return false;
    return moderation_ == nullptr ? TakeArming(solicited) : TakeModerated(fresh, solicited, now);
  }

  // When an event is due that moderation holds back now; kNever: none is.
  TimePoint due = kNever;

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
  void* owner = nullptr;  // its session
  bool listed = false;
  bool timed = false;  // among those that wait for `due`
  bool event_pending = false;
  uint64_t events_sent = 0;

 private:
  bool TakeModerated(uint32_t fresh, bool solicited, TimePoint now) {
    CqModeration& all = *moderation_;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&config_.control->arm, __ATOMIC_ACQUIRE) == ROCEGW_CQ_UNARMED) {
      // The client polls after it has armed the queue, and finds these.
      due = kNever;
      return false;
    }
    if (solicited) all.solicited.store(true, std::memory_order_relaxed);
    const uint32_t waiting = all.waiting.fetch_add(fresh, std::memory_order_relaxed) + fresh;
    if (waiting == 0) {
      // Another worker has told.
      due = kNever;
      return false;
    }
    const bool each = count_ == 0 && period_ == Duration();
    const bool enough = each || (count_ != 0 && waiting >= count_);
    if (due == kNever && period_ != Duration()) due = now + period_;
    if (!enough && due > now) return false;
    due = kNever;
    if (!TakeArming(all.solicited.load(std::memory_order_relaxed))) return false;
    // Nobody waits for an event before this one is sent.
    all.waiting.store(0, std::memory_order_relaxed);
    all.solicited.store(false, std::memory_order_relaxed);
    return true;
  }

  bool TakeArming(bool solicited) {
    // The completion must be visible before the arm word is read: the client arms, then looks once
    // more.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t arm = __atomic_load_n(&config_.control->arm, __ATOMIC_ACQUIRE);
    if (arm == ROCEGW_CQ_UNARMED || (arm == ROCEGW_CQ_ARM_SOLICITED && !solicited)) return false;
    return __atomic_compare_exchange_n(&config_.control->arm, &arm, ROCEGW_CQ_UNARMED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }

  CqConfig config_;
  shm::CompletionRing ring_;
  CqModeration* moderation_ = nullptr;
  uint32_t count_ = 0;
  uint32_t fresh_count_ = 0;
  Duration period_;
  bool overrun_ = false;
  bool overrun_told_ = false;
  bool fresh_solicited_ = false;
};

}  // namespace rocegw::verbs
