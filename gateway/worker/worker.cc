// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/worker.h"

#include <utility>

namespace rocegw::worker {
namespace {

// The shortest pacing interval: a paced flow sends what is due within it at once.
constexpr Duration kTimerSlot = Microseconds(16);
// Distance of the timer whose slot is prefetched.
constexpr size_t kTimersAhead = 8;

}  // namespace

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)),
      counters_(*options_.counters),
      round_{.now = options_.start},
      control_(*options_.link),
      scheduler_(options_.clock, options_.link_bytes_per_second, options_.processor_time),
      wheel_(options_.start, kTimerSlot),
      transmit_(options_.ports, scheduler_, channels_, counters_),
      channels_(counters_, channel_events_),
      sessions_(control_),
      staged_({.qps = qps_,
               .activity = activity_,
               .scheduler = scheduler_,
               .transmit = transmit_,
               .counters = counters_}),
      discovery_(options_.secret),
      flood_(options_.secret),
      tables_{regions_, counters_},
      activity_(qps_, scheduler_, wheel_),
      congestion_(options_.congestion, options_.congestion_policy, qps_, activity_, counters_,
                  options_.start),
      completions_(sessions_, scheduler_, round_, counters_),
      events_(qps_, control_),
      bindings_({.channels = channels_,
                 .staged = staged_,
                 .sessions = sessions_,
                 .control = control_,
                 .round = round_}),
      outbox_({.sessions = sessions_,
               .scheduler = scheduler_,
               .transmit = transmit_,
               .memory = memory_,
               .staged = staged_,
               .bindings = bindings_,
               .events = events_,
               .times = times_,
               .round = round_,
               .counters = counters_}),
      memory_({.worker = options_.index,
               .sessions = sessions_,
               .qps = qps_,
               .activity = activity_,
               .scheduler = scheduler_,
               .transmit = transmit_,
               .control = control_,
               .outbox = outbox_,
               .counters = counters_,
               .engine = options_.engine}),
      channel_events_({.ports = options_.ports,
                       .transmit = transmit_,
                       .wheel = wheel_,
                       .qps = qps_,
                       .activity = activity_,
                       .groups = groups_,
                       .tombstones = tombstones_,
                       .staged = staged_,
                       .bindings = bindings_,
                       .control = control_,
                       .outbox = outbox_,
                       .round = round_}),
      doorbells_({.sessions = sessions_,
                  .qps = qps_,
                  .activity = activity_,
                  .scheduler = scheduler_,
                  .outbox = outbox_,
                  .round = round_,
                  .counters = counters_}),
      pump_({.qps = qps_,
             .activity = activity_,
             .scheduler = scheduler_,
             .transmit = transmit_,
             .control = control_,
             .outbox = outbox_,
             .memory = memory_,
             .counters = counters_}),
      session_control_({.watch = options_.watch,
                        .sessions = sessions_,
                        .scheduler = scheduler_,
                        .transmit = transmit_,
                        .memory = memory_,
                        .staged = staged_,
                        .bindings = bindings_,
                        .doorbells = doorbells_,
                        .times = times_,
                        .round = round_}),
      queue_pair_control_({.ports = options_.ports,
                           .sessions = sessions_,
                           .qps = qps_,
                           .activity = activity_,
                           .scheduler = scheduler_,
                           .groups = groups_,
                           .tombstones = tombstones_,
                           .bindings = bindings_,
                           .flood = flood_,
                           .congestion = congestion_,
                           .tables = tables_,
                           .outbox = outbox_,
                           .round = round_}),
      queue_control_(sessions_, completions_, events_),
      region_control_(regions_, memory_),
      network_control_({.ports = options_.ports,
                        .transmit = transmit_,
                        .channels = channels_,
                        .multicast = multicast_,
                        .discovery = discovery_,
                        .round = round_,
                        .counters = counters_},
                       options_.channel_congestion, options_.channel_policy),
      handler_({.link = *options_.link,
                .control = control_,
                .sessions = sessions_,
                .scheduler = scheduler_,
                .memory = memory_,
                .session_control = session_control_,
                .queue_pair_control = queue_pair_control_,
                .queue_control = queue_control_,
                .region_control = region_control_,
                .network_control = network_control_,
                .counters = counters_}),
      demultiplexer_({.worker = options_.index,
                      .steering = options_.steering,
                      .qps = qps_,
                      .activity = activity_,
                      .scheduler = scheduler_,
                      .groups = groups_,
                      .sessions = sessions_,
                      .multicast = multicast_,
                      .waiting = waiting_,
                      .channels = channels_,
                      .bindings = bindings_,
                      .discovery = discovery_,
                      .flood = flood_,
                      .handler = handler_,
                      .control = control_,
                      .outbox = outbox_,
                      .counters = counters_}),
      intake_({.worker = options_.index,
               .steering = options_.steering,
               .inboxes = options_.inboxes,
               .ports = options_.ports,
               .qps = qps_,
               .scheduler = scheduler_,
               .multicast = multicast_,
               .memory = memory_,
               .flood = flood_,
               .discovery = discovery_,
               .channels = channels_,
               .waiting = waiting_,
               .demultiplexer = demultiplexer_,
               .counters = counters_}) {}

bool Worker::RunOnce(TimePoint now) {
  round_.now = now;
  ++round_.iteration;
  scheduler_.BeginRound(now);
  bool busy = handler_.Apply();
  busy |= memory_.Collect();
  busy |= intake_.ReceiveAll(now);
  busy |= intake_.ReceiveHandedOver(now);
  busy |= doorbells_.Take(now);
  busy |= RunDeadlines(now);
  staged_.ReleaseArrived();
  congestion_.Look(now);
  busy |= channels_.LookAtCongestion(now);
  memory_.Flush();
  busy |= channels_.Run(now, channel::Acks::kLater);
  busy |= SendAll(now);
  memory_.Flush();
  busy |= channels_.Run(now, channel::Acks::kNow);
  busy |= transmit_.Transmit(memory_.Flush());
  completions_.Send();
  times_.ReportIfDue(now);
  control_.Wake();
  (busy ? counters_.loop_busy_iterations : counters_.loop_idle_iterations).Add();
  return busy;
}

bool Worker::RunDeadlines(TimePoint now) {
  due_.clear();
  wheel_.Advance(now, due_);
  bool busy = false;
  scheduler_.Mark();
  const bool prefetches = qps_.outgrows_caches();
  for (size_t i = 0; i < due_.size(); ++i) {
    const WorkerObject owner = due_[i];
    if (prefetches && i + kTimersAhead < due_.size())
      qps_.PrefetchSlot(due_[i + kTimersAhead].slot());
    busy |= owner.kind() == WorkerObject::Kind::kChannel
                ? channels_.OnTimer(owner.slot().index, now)
                : activity_.OnTimer(owner.slot(), outbox_, now);
  }
  return busy;
}

// Lets queue pairs and staged carriers send. Those without window on a channel wait there for their
// turn.
bool Worker::SendAll(TimePoint now) {
  bool busy = false;
  do {
    busy |= pump_.Run(now);
    busy |= staged_.Send(now);
  } while (channels_.GiveTurns(now));
  return busy;
}

bool Worker::MayNotSleep(TimePoint now) const {
  return scheduler_.HasReady(now) || transmit_.busy() || control_.has_waiting() ||
         channels_.busy() || staged_.wants_packet() || !waiting_.empty();
}

bool Worker::PrepareSleep(TimePoint now) {
  if (MayNotSleep(now)) return false;
  times_.Report(now);
  options_.link->worker_awake.store(false, std::memory_order_relaxed);
  inbox().sleeping.store(true, std::memory_order_seq_cst);
  // From here on every client writes its eventfd.
  bool found = doorbells_.TakeLast(now);
  for (const HandoffRing& ring : inbox().from) found |= !ring.empty();
  found |= handler_.has_messages();
  if (found) FinishSleep();
  return !found;
}

TimePoint Worker::NextDeadline() const {
  const TimePoint next = Earlier(wheel_.NextDeadline(), scheduler_.NextOpening());
  return Earlier(Earlier(next, completions_.NextDue()), flood_.NextDeadline());
}

Worker::StateBytes Worker::MeasureState() const {
  StateBytes state{.channels = channels_.MeasureBytes()};
  for (const QpSlot& slot : qps_.slots()) {
    if (slot.session == nullptr) continue;
    ++state.endpoints;
    state.endpoint_bytes += slot.qp->channel_bytes();
  }
  return state;
}

}  // namespace rocegw::worker
