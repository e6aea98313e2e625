// SPDX-License-Identifier: Apache-2.0
// State of a worker's tables for a gateway that takes over (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <utility>

#include "gateway/hand_over/state_stream.h"
#include "gateway/worker/hand_over/session_state.h"
#include "gateway/worker/objects/completion_events.h"
#include "gateway/worker/objects/group_table.h"
#include "gateway/worker/objects/native_congestion.h"
#include "gateway/worker/objects/qp_table.h"
#include "gateway/worker/objects/tombstones.h"
#include "gateway/worker/receive/discovery_limits.h"

namespace rocegw::worker {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limits of lists that QPNs and quotas bound otherwise.
constexpr uint32_t kMostSlots = 1u << 20;
constexpr uint32_t kMostObjects = 1u << 20;

// Hands over objects that the reader was linked with under the same handles, in ascending order.
template <typename Map, typename F>
void HandOverLinked(StateStream& state, Map& objects, const char* differs, F each) {
  std::vector<uint32_t> handles;
  handles.reserve(objects.size());
  for (const auto& [handle, object] : objects) handles.push_back(handle);
  std::sort(handles.begin(), handles.end());
  const uint32_t count = state.Count(handles.size(), kMostObjects);
  state.Require(count == handles.size(), differs);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    if (state.Require(state.Carry(handles[i]) == handles[i], differs))
      each(objects.find(handles[i])->second);
  }
}

// Names the queue pair's slot where the worker finds it.
void MoveTo(SlotHandle handle, QpSlot& slot) {
  transport::QpContext& context = slot.qp->context();
  context.handle = handle;
  if (slot.session == nullptr || slot.session->domain != nullptr) return;
  slot.session->pages[context.rare.doorbell_page].by_bit[context.rare.doorbell_bit] = handle;
}

}  // namespace

// Writes or reads which queue pair has which slot. Frames in flight, wait queues and tombstones
// name queue pairs by slot and generation, so the reader moves its queue pairs to the same slots.
// Queue pairs of a reserve stay with their gateway.
void QpTable::HandOver(StateStream& state) {
  auto& [slots, free, by_qpn] = *this;
  std::vector<QpSlot> own;
  KeyMap<SlotHandle> own_by_qpn;
  const uint32_t count = state.Count(slots.size(), kMostSlots);
  if (state.reading()) {
    own.swap(slots);
    free.clear();
    std::swap(own_by_qpn, by_qpn);
    slots.resize(state.ok() ? count : 0);
  }
  for (uint32_t i = 0; i < slots.size() && state.ok(); ++i) {
    QpSlot& slot = slots[i];
    // The worker makes every queue pair runnable, arms its timer and counts its records.
    auto& [qp, generation, runnable, session, bytes_left, armed, deadline, records] = slot;
    (void)runnable, (void)armed, (void)deadline, (void)records;
    state(generation, bytes_left);
    if (!state.Carry(session != nullptr)) {
      if (state.reading()) free.push_back(i);
      continue;
    }
    Qpn number = qp == nullptr ? Qpn{} : qp->context().config.qpn;
    state(number);
    if (!state.reading()) continue;
    const SlotHandle* const found = own_by_qpn.Find(number.value);
    QpSlot* const from = found == nullptr ? nullptr : &own[found->index];
    if (!state.Require(from != nullptr && from->session != nullptr && from->qp != nullptr,
                       "queue pair is missing")) {
      break;
    }
    qp = std::move(from->qp);
    session = std::exchange(from->session, nullptr);
    by_qpn.Insert(number.value, {i, generation});
    MoveTo({i, generation}, slot);
  }
  for (QpSlot& left : own) {
    if (left.qp == nullptr) continue;
    state.Require(left.session == nullptr, "queue pair has no state");
    const Qpn number = left.qp->context().config.qpn;
    const SlotHandle handle = Add(number);
    slots[handle.index].qp = std::move(left.qp);
    MoveTo(handle, slots[handle.index]);
  }
}

// The state does not name the pools: a reader counts all as of one. A writer with more than an
// older reader takes leaves out the oldest.
void Tombstones::HandOver(StateStream& state) {
  auto& [pools, by_handle] = *this;
  (void)by_handle;  // entered again
  std::vector<Tombstone*> written;
  for (auto& [share, pool] : pools)
    for (Tombstone& one : pool.kept) written.push_back(&one);
  std::ranges::sort(written, {}, [](const Tombstone* one) { return one->until; });
  if (written.size() > kMostOfPool)
    written.erase(written.begin(), written.end() - static_cast<ptrdiff_t>(kMostOfPool));
  const uint32_t count = state.Count(written.size(), kMostOfPool);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Tombstone read;
    if (state.reading()) {
      read.endpoint = std::make_unique<transport::EndpointTombstone>(SlotHandle{}, uint8_t{0},
                                                                     Qpn{}, Qpn{}, 0u);
    }
    auto& [endpoint, until] = state.reading() ? read : *written[i];
    endpoint->HandOver(state);
    state(until);
    if (state.reading() && state.ok()) Add(nullptr, std::move(read));
  }
}

void GroupTable::HandOver(StateStream& state, flow::CarrierNames& names) {
  auto& [groups] = *this;
  HandOverLinked(state, groups, "endpoint groups differ",
                 [&](transport::EndpointGroup& group) { group.HandOver(state, names); });
}

void NativeCongestion::HandOver(StateStream& state) {
  auto& [config, has_rules, qps, activity, counters, before, observed] = *this;
  (void)config, (void)has_rules, (void)qps, (void)activity, (void)counters;
  // The counters of the reader may begin anew; the observations go on from the sums of the writer.
  flow::CcCounts sums = Counts();
  sums.HandOver(state);
  if (state.reading()) {
    before = {};
    const flow::CcCounts own = Counts();
    before.acked_bytes = sums.acked_bytes - own.acked_bytes;
    before.cnps = sums.cnps - own.cnps;
    before.losses = sums.losses - own.losses;
  }
  observed.HandOver(state);
}

void DiscoveryLimits::HandOver(StateStream& state) {
  auto& [known_peers, of_known, of_stranger, of_strangers] = *this;
  (void)known_peers;  // the control thread reports them
  // Addresses that share a limit depend on the secret, which is new.
  (void)of_known, (void)of_stranger;
  of_strangers.HandOver(state);
}

void CompletionEvents::Resume(verbs::CompletionQueue& cq) {
  deferred_.Add(cq);
  if (cq.event_pending) WaitForSpace(cq, round_.now);
}

void HandOver(StateStream& state, Account& account) {
  auto& [share, slot, bytes, of_pool, pool, tenant, sessions, ready, served, turns_left, time,
         packet_cost, units, used_at, active, closed_until, reported_at, engine_copies,
         unpaid_bytes, unpaid_packets] = account;
  (void)share, (void)slot, (void)bytes, (void)of_pool, (void)tenant, (void)sessions;  // links
  (void)pool;                                                                         // the share's
  // The division of time begins anew: a debt is at most 0.4 ms, less than the pause.
  (void)ready, (void)served, (void)turns_left, (void)time, (void)units, (void)used_at, (void)active;
  (void)closed_until;   // found again by the next turn
  (void)engine_copies;  // none between bursts
  state(packet_cost, reported_at, unpaid_bytes, unpaid_packets);
  constexpr int64_t kMostCost = 1'000'000'000;
  state.Require(packet_cost >= 0 && packet_cost <= kMostCost, "cost of a packet is impossible");
}

void HandOver(StateStream& state, WorkerSession& session, CompletionEvents& events) {
  const StateRecord record(state, StateKind::kWorkerSession);
  auto& [link, index, account, pages, peers, cqs, srqs, domain, failed, active, last_active, pace,
         operations, ops, notes, done_ahead, counts, listed, engine, staging, heap_in_hand,
         backlogged, held, packets_held, reading, staged, staged_shared, submitted,
         batches_submitted, batches_collected, late_replies] = session;
  // Links, what the control thread sends, and staged carriers, which are handed over apart.
  (void)link, (void)index, (void)pages, (void)peers, (void)domain, (void)staged;
  (void)staged_shared;
  // Accounts are handed over once for all sessions of a pool.
  (void)account;
  // A session begins active, and its times were reported.
  (void)active, (void)last_active, (void)pace, (void)operations;
  // All memory operations are done (Worker::Rest).
  (void)notes, (void)done_ahead, (void)counts, (void)listed, (void)staging, (void)heap_in_hand;
  (void)backlogged, (void)packets_held, (void)batches_submitted, (void)batches_collected;
  state.Require(ops.empty() && engine.ops.empty() && held.empty() && reading.empty() &&
                    submitted.empty() && late_replies.empty(),
                "memory operations are outstanding");
  state(failed);
  HandOverLinked(state, cqs, "completion queues differ",
                 [&](std::unique_ptr<verbs::CompletionQueue>& cq) {
                   cq->HandOver(state);
                   if (state.reading() && state.ok()) events.Resume(*cq);
                 });
  HandOverLinked(state, srqs, "shared receive queues differ",
                 [&](std::unique_ptr<transport::SharedReceives>& srq) { srq->HandOver(state); });
}

}  // namespace rocegw::worker
