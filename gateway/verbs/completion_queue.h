// SPDX-License-Identifier: Apache-2.0
// Producer of completions: the ring of one CQ on one worker. After a burst, the worker calls
// TakeEvent and sends the event if the client has armed the queue. Belongs to the worker that links
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

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::verbs {

// Moderation counts that the rings of one CQ on all workers share.
struct CqModeration {
  std::atomic<uint32_t> waiting{0};  // completions since the client armed the queue
  std::atomic<bool> solicited{false};

  // Writes or reads the counts (gateway/hand_over). Once for all workers.
  void HandOver(hand_over::StateStream& state);
};

// Proof that clients see the completions that were written before it was made, and that words which
// clients write are read afterwards.
class VisibleCompletions {
 public:
  // A fence waits for all stores, so there is one for all queues of a burst.
  VisibleCompletions() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
};

// Fields of every completion fill the first cache line.
class alignas(64) CompletionQueue {
 public:
  // State of the worker: the list of queues written in this burst, its session, and whether an
  // event waits for space in its channel.
  std::vector<CompletionQueue*>* fresh_list = nullptr;
  SessionIndex owner;
  bool listed = false;
  bool event_pending = false;

 private:
  bool overrun_ = false;
  bool overrun_told_ = false;
  bool fresh_solicited_ = false;
  const bool has_channel_;  // config_.event_fd is valid (a copy)
  uint32_t fresh_count_ = 0;
  shm::CompletionRing ring_;
  CqConfig config_;  // begins with `control`
  CqModeration* moderation_ = nullptr;
  uint32_t count_ = 0;
  Duration period_;

 public:
  // Time of an event that moderation defers; kNever: none.
  TimePoint due = kNever;
  // State of the worker: time at which it looks at `due`.
  TimePoint timed_at = kNever;
  uint64_t events_sent = 0;

  explicit CompletionQueue(const CqConfig& config)
      : has_channel_(config.event_fd >= 0),
        ring_(config.ring, config.entries, &config.control->worker[config.worker_slot].consumer),
        config_(config) {}

  // Writes a completion. Returns false once the client has overrun the queue; as on hardware, the
  // queue stays broken then.
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

  // Prefetches what Push and WakePollers touch. The object should be in the cache.
  void Prefetch() const {
    ring_.Prefetch();
    __builtin_prefetch(&config_.control->sleeping);
  }

  // Moves to another ring. Returns false, without a change, if more than `most` completions are not
  // polled.
  bool Resize(rocegw_cqe* ring, uint32_t entries, uint32_t most) {
    return ring_.MoveTo(ring, entries, most);
  }

  // Sets moderation (ibv_modify_cq): an event is due when `count` completions wait, or when the
  // first has waited for `period`; both 0: for each completion. The next TakeEvent applies it to
  // those that wait.
  void Moderate(CqModeration& moderation, uint32_t count, Duration period) {
    moderation_ = &moderation;
    count_ = count;
    period_ = period;
  }

  const CqConfig& config() const { return config_; }
  bool overrun() const { return overrun_; }
  // Returns true once after the queue was overrun.
  bool TakeOverrun() { return overrun_ && !std::exchange(overrun_told_, true); }

  // Returns true if completions may cause events.
  bool has_channel() const { return has_channel_; }
  // Returns true if an event must be sent for the completions since the last call: the client had
  // armed the queue, and no other worker has taken the arming. Moderation may defer the event to
  // `due`.
  bool TakeEvent(TimePoint now) {
    const bool solicited = std::exchange(fresh_solicited_, false);
    const uint32_t fresh = std::exchange(fresh_count_, 0);
    if (!has_channel_) return false;
    return moderation_ == nullptr ? TakeArming(solicited) : TakeModerated(fresh, solicited, now);
  }

  // Wakes the threads that sleep until the queue has a completion. Called after a burst, like
  // TakeEvent. Returns the number of threads woken. The client sets the word, then polls once more.
  uint32_t WakePollers(const VisibleCompletions&) {
    return shm::WakeSleepers(&config_.control->sleeping);
  }

  // Writes the state, or reads it into a queue with the same configuration and moderation
  // (gateway/hand_over). The burst has ended: TakeEvent was called.
  void HandOver(hand_over::StateStream& state);

 private:
  bool TakeModerated(uint32_t fresh, bool solicited, TimePoint now) {
    CqModeration& all = *moderation_;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&config_.control->arm, __ATOMIC_ACQUIRE) == ROCEGW_CQ_UNARMED) {
      // The client polls after it arms the queue, and finds these completions.
      due = kNever;
      return false;
    }
    if (solicited) all.solicited.store(true, std::memory_order_relaxed);
    const uint32_t waiting = all.waiting.fetch_add(fresh, std::memory_order_relaxed) + fresh;
    if (waiting == 0) {
      // Another worker has sent the event.
      due = kNever;
      return false;
    }
    const bool each = count_ == 0 && period_ == Duration();
    const bool enough = each || (count_ != 0 && waiting >= count_);
    if (due == kNever && period_ != Duration()) due = now + period_;
    if (!enough && due > now) return false;
    due = kNever;
    if (!TakeArming(all.solicited.load(std::memory_order_relaxed))) return false;
    // The client cannot arm the queue again before it gets this event.
    all.waiting.store(0, std::memory_order_relaxed);
    all.solicited.store(false, std::memory_order_relaxed);
    return true;
  }

  bool TakeArming(bool solicited) {
    // The completion must be visible before the arm word is read. The client does the reverse: it
    // arms, then polls once more.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    uint32_t arm = __atomic_load_n(&config_.control->arm, __ATOMIC_ACQUIRE);
    if (arm == ROCEGW_CQ_UNARMED || (arm == ROCEGW_CQ_ARM_SOLICITED && !solicited)) return false;
    return __atomic_compare_exchange_n(&config_.control->arm, &arm, ROCEGW_CQ_UNARMED, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
};

}  // namespace rocegw::verbs
