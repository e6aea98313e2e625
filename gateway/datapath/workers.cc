// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/workers.h"

#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/metrics/drop_reason.h"
#include "gateway/session/reserve/random.h"

namespace rocegw::datapath {
namespace {

// With at most this many processors, a spinning worker would take time from the program that it
// serves.
constexpr size_t kFewProcessors = 4;

worker::WorkerWaiting MakeWaiting(const WaitingConfig& config) {
  worker::WorkerWaiting waiting;
  waiting.policy.mode = config.mode;
  waiting.policy.yield_after = Microseconds(config.yield_after_us);
  waiting.policy.sleep_after = Microseconds(config.sleep_after_us);
  waiting.policy.keeps_core = config.realtime_priority != 0;
  waiting.scheduling.slice = Microseconds(config.slice_us);
  waiting.scheduling.realtime_priority = config.realtime_priority;
  waiting.scheduling.keep_processors_awake = config.keep_processors_awake;
  return waiting;
}

UniqueFd MakeEvent() { return UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

std::vector<int> Workers::AllowedProcessors() {
  cpu_set_t set;
  std::vector<int> allowed;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) allowed.push_back(cpu);
  }
  return allowed;
}

Status Workers::Build(const Config& config, const port::SteeringTable& steering, const Ports& ports,
                      const WorkerCopies& copies) {
  const size_t count = steering.worker_count();
  const std::vector<int> processors = AllowedProcessors();
  if (config.pin_workers && processors.size() < count) {
    return {EINVAL, "pin_workers: " + std::to_string(count) + " workers, but only " +
                        std::to_string(processors.size()) +
                        " processors are allowed; lower workers or set pin_workers: false"};
  }
  control_wake_fd_ = MakeEvent();
  for (size_t i = 0; i < count; ++i) {
    One& one = *workers_.emplace_back(std::make_unique<One>(count));
    one.wake_fd = MakeEvent();
    if (!one.wake_fd.valid() || !control_wake_fd_.valid()) {
      return {errno, std::string("workers: no descriptors: ") + std::strerror(errno) +
                         "; raise the limit of open files (ulimit -n, LimitNOFILE=)"};
    }
    one.link.worker_wake_fd = one.inbox.wake_fd = one.wake_fd.get();
    one.link.control_wake_fd = control_wake_fd_.get();
    if (config.pin_workers) one.cpu = processors[i];
  }
  congestion_ = config.congestion;
  congestion_.link_bits_per_second = ports.LinkBytesPerSecond() * 8;
  return Make(config, steering, ports, copies);
}

Status Workers::Make(const Config& config, const port::SteeringTable& steering, const Ports& ports,
                     const WorkerCopies& copies) {
  const size_t count = workers_.size();
  const std::vector<int> processors = AllowedProcessors();
  std::vector<worker::WorkerInbox*> inboxes;
  for (const auto& one : workers_) inboxes.push_back(&one->inbox);
  session::Random random;
  worker::WorkerWaiting waiting = MakeWaiting(config.waiting);
  if (processors.size() > kFewProcessors && processors.size() > count)
    waiting.policy.may_yield = false;
  waiting.guests = config.guest_rounds;
  for (size_t i = 0; i < count; ++i) {
    One& one = *workers_[i];
    worker::WorkerOptions options;
    options.index = static_cast<WorkerIndex>(i);
    options.ports = ports.QueuesOf(options.index);
    options.link = &one.link;
    options.inboxes = inboxes;
    options.steering = steering;
    options.counters = &one.counters;
    options.link_bytes_per_second = ports.LinkBytesPerSecond();
    options.congestion.kind = config.native_congestion;
    options.congestion.profile = &congestion_;
    options.congestion_policy = config.congestion_policy;
    options.congestion.window_bytes =
        config.window_bytes != 0 ? static_cast<uint32_t>(config.window_bytes) : ports.SafeWindow();
    options.channel_congestion = options.congestion;
    options.channel_policy = config.channel_policy;
    options.engine = copies.SettingsOf(i);
    one.engine_minimum = options.engine.queue == nullptr ? 0 : options.engine.minimum_bytes;
    options.secret = {random.Next64(), random.Next64()};
    auto thread = worker::WorkerThread::Make(std::move(options), waiting);
    if (!thread.ok()) return thread.status();
    one.thread = std::move(*thread);
  }
  return OkStatus();
}

Status Workers::Run(bool parked) {
  for (auto& one : workers_) {
    if (parked) one->thread->Park();
    if (Status begun = one->thread->Begin(one->cpu); !begun.ok()) return begun;
  }
  return OkStatus();
}

void Workers::Park() {
  for (auto& one : workers_) one->thread->Park();
}

bool Workers::are_parked() const {
  return std::ranges::all_of(workers_, [](const auto& one) { return one->thread->is_parked(); });
}

void Workers::Unpark() {
  for (auto& one : workers_) one->thread->Unpark();
}

void Workers::Stop() {
  // All threads stop before the first link or inbox is destroyed: a worker may write to another's.
  for (auto& one : workers_) one->thread.reset();
  workers_.clear();
}

std::vector<worker::WorkerLink*> Workers::links() const {
  std::vector<worker::WorkerLink*> links;
  for (const auto& one : workers_) links.push_back(&one->link);
  return links;
}

std::vector<const Heartbeat*> Workers::heartbeats() const {
  std::vector<const Heartbeat*> heartbeats;
  for (const auto& one : workers_) heartbeats.push_back(&one->thread->heartbeat());
  return heartbeats;
}

void Workers::AddRows(session::StateSnapshot& snapshot) const {
  for (size_t i = 0; i < workers_.size(); ++i) {
    const One& one = *workers_[i];
    session::WorkerRow row;
    row.index = static_cast<uint16_t>(i);
    row.cpu = one.cpu;
    row.engine_minimum = one.engine_minimum;
    row.qps = i < snapshot.qps_by_worker.size() ? snapshot.qps_by_worker[i] : 0;
    if (i < snapshot.silent_by_worker.size()) row.silent = snapshot.silent_by_worker[i];
    // Closes are read first, so that every close read has its open counted: the difference is never
    // negative.
    const uint64_t ended = one.counters.channel_close_events.Read();
    row.channels = static_cast<uint32_t>(one.counters.channel_open_events.Read() - ended);
    for (const metrics::CounterInfo& info : metrics::AllCounters()) {
      row.counters.push_back(info.get(one.counters).Read());
    }
    for (size_t r = 0; r < metrics::kDropReasonCount; ++r) {
      row.drops.push_back(one.counters.DropCount(static_cast<metrics::DropReason>(r)));
    }
    snapshot.workers.push_back(std::move(row));
  }
}

}  // namespace rocegw::datapath
