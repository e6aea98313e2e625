// SPDX-License-Identifier: Apache-2.0
// Decides what a thread does between two turns in which it looks for work: look again, yield its
// core, or sleep until it is woken. Workers use it between rounds, polling threads of programs
// between polls of a completion queue. The modes are those that RDMAbox (section IV-B) compares;
// docs/develop/threading.md describes them. Reads no clock and makes no system call. Belongs to one
// thread.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/base/timing/late_yields.h"

namespace rocegw {

enum class WaitMode : uint8_t {
  kBusy,        // never gives the core away
  kEvent,       // sleeps after each turn
  kEventBatch,  // sleeps after the first turn that found nothing
  kHybrid,      // sleeps when nothing was found for some time
  kAdaptive,    // as hybrid, but yields meanwhile, and sleeps early while its core is crowded
};

enum class WaitStep : uint8_t { kPoll, kYield, kSleep };

// Times without work, not turns: polling a socket takes a microsecond, polling a ring a tenth of
// that.
struct WaitParameters {
  WaitMode mode = WaitMode::kAdaptive;
  Duration yield_after = Microseconds(8);   // before a yield, and between two
  Duration sleep_after = Microseconds(50);  // before it sleeps
  bool may_yield = true;                    // false: spinning threads cannot outnumber cores
  bool may_sleep = true;                    // false: nothing would wake it, so it yields instead
  // The thread keeps its core although it yields, as a real-time thread does. It sleeps instead.
  bool keeps_core = false;
  LateYields late_yields{};
};

class WaitPolicy {
 public:
  constexpr explicit WaitPolicy(const WaitParameters& parameters) : parameters_(parameters) {}

  // Returns what to do behind a turn that began at `now`.
  WaitStep Next(TimePoint now, bool found_work) {
    if (found_work) last_work_ = last_rest_ = now;
    const WaitStep step = Choose(now, found_work);
    if (step != WaitStep::kSleep || parameters_.may_sleep) return step;
    return parameters_.may_yield ? WaitStep::kYield : WaitStep::kPoll;
  }

  // Records a yield that began at `before` and ended at `after`.
  void OnYield(TimePoint before, TimePoint after) {
    last_rest_ = after;
    parameters_.late_yields.OnYield(before, after);
  }

  // Records the end of a sleep.
  void OnSleep(TimePoint after) { last_work_ = last_rest_ = after; }

  // Returns true if threads that do not yield want the core.
  bool crowded(TimePoint now) const {
    return parameters_.keeps_core || parameters_.late_yields.crowded(now);
  }

  // Returns how far away a deadline must be for a sleep until then. Waking up late delays the
  // deadline, staying awake delays the others on the core.
  Duration ShortestSleep(TimePoint now) const {
    return parameters_.mode == WaitMode::kAdaptive && !crowded(now) ? kShortestSleep
                                                                    : kShortestSleepIfCrowded;
  }

  // Falling asleep and waking up takes about this long where a processor halts meanwhile.
  static constexpr Duration kShortestSleep = Microseconds(100);
  // The core goes to another thread, so no processor halts.
  static constexpr Duration kShortestSleepIfCrowded = Microseconds(5);

 private:
  WaitStep Choose(TimePoint now, bool found_work) const {
    switch (parameters_.mode) {
      case WaitMode::kBusy:
        return WaitStep::kPoll;
      case WaitMode::kEvent:
        return WaitStep::kSleep;
      case WaitMode::kEventBatch:
        return found_work ? WaitStep::kPoll : WaitStep::kSleep;
      case WaitMode::kHybrid:
        return now - last_work_ > parameters_.sleep_after ? WaitStep::kSleep : WaitStep::kPoll;
      case WaitMode::kAdaptive:
        break;
    }
    if (found_work) return WaitStep::kPoll;
    if (parameters_.may_sleep && now - last_work_ > parameters_.sleep_after)
      return WaitStep::kSleep;
    if (!parameters_.may_yield || now - last_rest_ < parameters_.yield_after)
      return WaitStep::kPoll;
    return parameters_.may_sleep && crowded(now) ? WaitStep::kSleep : WaitStep::kYield;
  }

  WaitParameters parameters_;
  TimePoint last_work_;
  TimePoint last_rest_;  // or work
};

}  // namespace rocegw
