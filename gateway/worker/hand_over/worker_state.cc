// SPDX-License-Identifier: Apache-2.0
// State of a worker for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <set>

#include "gateway/hand_over/state_stream.h"
#include "gateway/worker/hand_over/counters_state.h"
#include "gateway/worker/hand_over/session_state.h"
#include "gateway/worker/hand_over/worker_carriers.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

bool Worker::Prepare(TimePoint now) {
  round_.now = now;
  scheduler_.BeginRound(now);
  return handler_.Apply();
}

bool Worker::Rest(TimePoint now) {
  round_.now = now;
  ++round_.iteration;
  scheduler_.BeginRound(now);
  control_.SendWaiting();
  memory_.Collect();
  intake_.TakeWaiting(now, true);
  intake_.ReceiveHandedOver(now);
  staged_.ReleaseArrived();
  transmit_.Transmit(memory_.Flush());
  completions_.Send();
  times_.Report(now);
  control_.Wake();
  return AtRest();
}

bool Worker::AtRest() const {
  const auto& from = options_.inboxes[options_.index]->from;
  return memory_.idle() && !transmit_.has_packets() && !control_.has_waiting() &&
         !handler_.has_messages() && waiting_.empty() &&
         std::all_of(from.begin(), from.end(),
                     [](const HandoffRing& ring) { return ring.empty(); });
}

// Returns the sessions in the order of their ids.
std::vector<WorkerSession*> Worker::SessionsInOrder() const {
  std::vector<WorkerSession*> sessions;
  for (const auto& [id, session] : sessions_.all()) sessions.push_back(session.get());
  std::ranges::sort(sessions, {}, [](const WorkerSession* s) { return s->link.session.value; });
  return sessions;
}

void Worker::HandOverSessions(StateStream& state, std::span<WorkerSession* const> sessions) {
  const auto count = static_cast<uint32_t>(sessions.size());
  state.Require(state.Carry(count) == count, "sessions differ");
  for (WorkerSession* const session : sessions) {
    const uint32_t id = session->link.session.value;
    if (!state.Require(state.Carry(id) == id, "sessions differ")) return;
    const bool failed = session->failed;
    worker::HandOver(state, *session, completions_);
    // The control thread of this gateway closes the session, if that of the other one had not.
    if (state.reading() && session->failed != failed) {
      session->failed = failed;
      sessions_.Stop(*session, "it was stopped before the gateway was replaced");
    }
  }
}

// Counts the channels that the queue pairs use, and lets each queue pair look at its queues: the
// other gateway may have taken its doorbell.
void Worker::Resume(TimePoint now) {
  for (QpSlot& slot : qps_.slots()) {
    if (slot.session == nullptr) continue;
    const ChannelBindings::Slots used = bindings_.SlotsOf(slot.qp->context());
    for (const uint32_t channel : used.all()) {
      bindings_.references().Adopt(slot.session->link.share, channel);
      bindings_.references().Begin(slot.session->link.share, channel);
    }
    RecordHeap::Update(slot);
    activity_.AfterEvent(slot, slot.qp->context().handle);
  }
  channels_.ArmTimers(now);
}

void Worker::HandOver(StateStream& state) {
  const StateRecord record(state, StateKind::kWorker);
  auto& [options, counters, round, control, scheduler, wheel, transmit, due, channels, sessions,
         staged, qps, groups, tombstones, multicast, waiting, discovery, flood, regions, tables,
         activity, congestion, completions, events, times, bindings, outbox, memory, channel_events,
         doorbells, pump, session_control, queue_pair_control, queue_control, region_control,
         network_control, handler, demultiplexer, intake] = *this;
  // Configuration, and what the control thread links or reports: groups of multicast, regions.
  (void)multicast, (void)regions, (void)tables;
  // Parts without state between iterations of a worker at rest. The scheduler's accounts are handed
  // over below, and timers are armed again.
  (void)waiting, (void)round, (void)control, (void)scheduler, (void)wheel, (void)transmit,
      (void)due;
  (void)activity, (void)events, (void)times, (void)outbox, (void)memory, (void)channel_events;
  (void)doorbells, (void)pump, (void)session_control, (void)queue_pair_control;
  (void)queue_control, (void)region_control, (void)handler, (void)intake;
  // Numbers of QP1's datagrams, which peers ignore, and the watches of IPv4 IDs and floods begin
  // anew.
  (void)network_control, (void)demultiplexer, (void)flood;
  (void)completions;  // handed over with their queues
  state.Require(state.reading() || AtRest(), "the worker does not rest");
  const uint32_t index = options.index;
  state.Require(state.Carry(index) == index, "state of another worker");
  // Before the observations of congestion control, which are differences of counters.
  if (record.version() >= 2) worker::HandOver(state, counters);
  const std::vector<WorkerSession*> in_order = SessionsInOrder();
  WorkerCarriers names(channels, staged);

  channels.HandOver(state);
  if (state.ok()) qps.HandOver(state);
  if (state.ok()) staged.HandOver(state, names, sessions);
  if (state.ok()) HandOverSessions(state, in_order);
  for (QpSlot& slot : qps.slots())
    if (state.ok() && slot.session != nullptr) slot.qp->HandOver(state, names);
  if (state.ok()) groups.HandOver(state, names);
  if (state.ok()) tombstones.HandOver(state);
  // A session stands for its account, and one for its pool: slots with limits have accounts of
  // their own.
  std::set<const Account*> accounts;
  std::set<const tenant::Share*> pools;
  std::vector<WorkerSession*> of_pools;
  for (WorkerSession* const session : in_order) {
    if (accounts.insert(session->account).second) worker::HandOver(state, *session->account);
    if (pools.insert(session->link.share).second) of_pools.push_back(session);
  }
  if (state.ok()) bindings.references().HandOver(state, of_pools);
  congestion.HandOver(state);
  discovery.HandOver(state);
  if (state.reading() && state.ok()) Resume(state.now());
}

}  // namespace rocegw::worker
