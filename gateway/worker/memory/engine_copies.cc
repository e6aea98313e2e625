// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/memory/engine_copies.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gateway/base/timing/monotonic_clock.h"
#include "gateway/memory/direct_copy.h"

namespace rocegw::worker {
namespace {

// Number of copies that a doorbell starts: it costs the processor as much as preparing several.
constexpr uint32_t kStartTogether = 8;
// Limit of operations of a session, which bounds the search for overlaps.
constexpr size_t kMostOps = 256;

// Waits a moment for the engine. The kernel gets the processor after a while: the engine may be a
// thread (DPDK's skeleton driver).
void Pause(uint32_t round) {
  constexpr uint32_t kSpins = 256;
  if (round >= kSpins) {
    ::sched_yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

EngineCopies::EngineCopies(const memory::CopySettings& settings, metrics::WorkerCounters& counters)
    : queue_(settings.queue),
      minimum_(settings.minimum_bytes),
      last_by_processor_(settings.last_by_processor),
      most_of_pool_(settings.most_of_pool != 0 ? settings.most_of_pool
                    : queue_ == nullptr        ? 0
                                               : std::max(queue_->depth() / 2, 1u)),
      counters_(counters),
      slots_(queue_ == nullptr ? 0 : queue_->depth()) {
  for (uint32_t i = 0; i < slots_.size(); ++i) free_.push_back(i);
}

bool EngineCopies::Overlaps(const EngineOps& taken, const memory::MemoryOp& op) const {
  const uint8_t* const end = op.direct + op.length;
  if (op.direct >= taken.end || end <= taken.begin) return false;
  return std::ranges::any_of(taken.ops, [&](const memory::MemoryOp& earlier) {
    return op.direct < earlier.direct + earlier.length && earlier.direct < end;
  });
}

bool EngineCopies::TakeWrite(WorkerSession& session, const memory::MemoryOp& op,
                             const transport::AccessTag& tag) {
  if (op.kind != memory::OpKind::kWrite || op.direct == nullptr || op.buffer == nullptr ||
      op.length == 0) {
    return false;
  }
  EngineOps& taken = session.engine;
  if (taken.ops.size() == kMostOps || Overlaps(taken, op)) return false;
  const bool given = GiveToEngine(session, op);
  if (taken.ops.empty()) taken.begin = taken.end = op.direct;
  taken.begin = std::min<const uint8_t*>(taken.begin, op.direct);
  taken.end = std::max<const uint8_t*>(taken.end, op.direct + op.length);
  taken.ops.push_back(op);
  taken.notes.push_back({.tag = tag});
  taken.heads.push_back(given ? EngineOps::Head::kInFlight : EngineOps::Head::kForProcessor);
  return true;
}

bool EngineCopies::GiveToEngine(WorkerSession& session, const memory::MemoryOp& op) {
  const uint32_t length = memory::HeadLength(op);
  if (length == 0 || op.length < minimum_ || left_ < last_by_processor_ ||
      failures_ >= kMostFailures)
    return false;
  // A pool must leave descriptors to the others.
  if (free_.empty() || session.account->engine_copies >= most_of_pool_ ||
      !queue_->Add(op.direct, op.buffer, length, free_.back())) {
    counters_.memory_engine_refused_operations.Add();
    return false;
  }
  slots_[free_.back()] = {&session, static_cast<uint32_t>(session.engine.ops.size())};
  free_.pop_back();
  ++session.engine.in_flight;
  ++session.account->engine_copies;
  if (++queued_ == kStartTogether) {
    queue_->Start();
    queued_ = 0;
  }
  return true;
}

// Takes what the engine has completed, of any session. Returns false if there was nothing.
bool EngineCopies::Poll() {
  std::array<memory::CopyQueue::Completion, 32> done;
  const size_t count = queue_->Poll(done);
  for (size_t i = 0; i < count; ++i) {
    failures_ = done[i].copied ? 0 : failures_ + 1;
    if (failures_ == kMostFailures) counters_.memory_engine_pause_events.Add();
    End(done[i].cookie, done[i].copied);
  }
  return count != 0;
}

void EngineCopies::End(uint32_t cookie, bool copied) {
  const Slot slot = slots_[cookie];
  free_.push_back(cookie);
  EngineOps& taken = slot.session->engine;
  taken.heads[slot.op] = copied ? EngineOps::Head::kWritten : EngineOps::Head::kFailed;
  if (copied) {
    counters_.memory_engine_operations.Add();
    counters_.memory_engine_bytes.Add(memory::HeadLength(taken.ops[slot.op]));
  }
  --taken.in_flight;
  --slot.session->account->engine_copies;
}

void EngineCopies::GiveUp() {
  if (!queue_->Abandon()) return;
  abandoned_ = true;
  in_use_ = false;
  counters_.memory_engine_abandoned_events.Add();
  std::vector<bool> in_flight(slots_.size(), true);
  for (const uint32_t cookie : free_) in_flight[cookie] = false;
  for (uint32_t cookie = 0; cookie < slots_.size(); ++cookie)
    if (in_flight[cookie]) End(cookie, false);
}

// Waits until none of a session's copies is in flight. As long as the engine may read the packets
// and write to the region, neither may be used for anything else: an engine that answers nothing is
// taken from its device, or waited for without end. The watchdog finds a worker that stays here.
void EngineCopies::Await(const EngineOps& taken) {
  constexpr uint32_t kRoundsPerLook = 1024;
  TimePoint silent_since = MonotonicNow();
  bool answered = false;  // since the last look at the time
  for (uint32_t round = 0; taken.in_flight != 0; ++round) {
    if (Poll()) {
      answered = true;
    } else {
      if (round == 0) counters_.memory_engine_wait_events.Add();
      Pause(round);
    }
    if (round % kRoundsPerLook != kRoundsPerLook - 1) continue;
    const TimePoint now = MonotonicNow();
    if (std::exchange(answered, false)) silent_since = now;
    // The worker itself may have stood still meanwhile, so the engine is asked once more.
    if (now - silent_since > memory::kCopyLost && !Poll()) GiveUp();
  }
}

// Makes the copies that the engine did not get, each while the cache lines of the next one arrive.
void EngineCopies::CopyOthers(WorkerSession& session) {
  EngineOps& taken = session.engine;
  const auto is_other = [&](size_t i) { return taken.heads[i] == EngineOps::Head::kForProcessor; };
  size_t next = 0;
  const auto find_next = [&] {
    while (next < taken.ops.size() && !is_other(next)) ++next;
  };
  for (find_next(); next < taken.ops.size();) {
    const size_t i = next++;
    find_next();
    if (next < taken.ops.size()) memory::PrefetchDirect(taken.ops[next]);
    memory::WriteHead(taken.ops[i]);
    taken.heads[i] = EngineOps::Head::kWritten;
    ++session.counts.direct_operations;
    session.counts.direct_bytes += taken.ops[i].length;
  }
}

void EngineCopies::Finish(WorkerSession& session) {
  EngineOps& taken = session.engine;
  if (queued_ != 0) queue_->Start();
  queued_ = 0;
  CopyOthers(session);
  if (taken.in_flight != 0) Await(taken);
  for (size_t i = 0; i < taken.ops.size(); ++i) {
    if (taken.heads[i] == EngineOps::Head::kFailed) {
      memory::WriteHead(taken.ops[i]);
      taken.heads[i] = EngineOps::Head::kWritten;
      counters_.memory_engine_failed_operations.Add();
      ++session.counts.direct_operations;
      session.counts.direct_bytes += taken.ops[i].length;
    }
    memory::WriteTail(taken.ops[i]);
  }
}

}  // namespace rocegw::worker
