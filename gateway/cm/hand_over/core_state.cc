// SPDX-License-Identifier: Apache-2.0
// State of the connection manager and its discovery for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/cm/cm_engine.h"
#include "gateway/cm/core.h"
#include "gateway/cm/hand_over/connection_state.h"
#include "gateway/cm/hand_over/values_state.h"
#include "gateway/cm/id_list.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::cm {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limit of lists that CmConfig bounds otherwise.
constexpr uint32_t kMostListed = 1u << 20;

void HandOverInfo(StateStream& state, wire::GatewayInfo& info) {
  auto& [version, workers, instance, epoch, features, window, acceptors] = info;
  state(version, workers, instance, epoch, features, window);
  for (Qpn& acceptor : acceptors) state(acceptor);
  state.Require(workers != 0 && workers <= wire::kMostGatewayWorkers,
                "number of a gateway's workers is impossible");
}

void HandOverCounters(StateStream& state, DiscoveryCounters& counters) {
  auto& [asked, sent, gateways, refused, silent, answered, not_answered, table_full,
         unauthenticated] = counters;
  state(asked, sent, gateways, refused, silent, answered, not_answered, table_full,
        unauthenticated);
}

void HandOverCounters(StateStream& state, CmCounters& counters) {
  auto& [mads_received, mads_sent, mads_resent, connects, requests, established, rejected, refused,
         timed_out, disconnected, stale, backlog_full] = counters;
  state(mads_received, mads_sent, mads_resent, connects, requests, established, rejected, refused,
        timed_out, disconnected, stale, backlog_full);
}

}  // namespace

void Discovery::HandOverPeer(StateStream& state, const wire::Gid& gid, Peer& peer) {
  auto& [kind, asking, silent, sent, authenticated, stranger, silences, source, transaction_id,
         asked, until, waiting, info] = peer;
  state.Enum(kind, PeerKind::kGateway);
  (void)stranger;  // begins anew
  state(asking, silent, sent, authenticated, silences);
  cm::HandOver(state, source);
  state(transaction_id, asked, until, waiting);
  HandOverInfo(state, info);
  if (state.reading() && asking) waiting_.insert({waiting, gid});
  if (state.reading()) List(gid, peer);
}

void Discovery::HandOverInstance(StateStream& state) {
  state(own_.instance);
  state.Require(own_.instance != 0, "gateway has no instance");
}

void Discovery::HandOver(StateStream& state, CmActions& actions) {
  const StateRecord record(state, StateKind::kDiscovery);
  auto& [config, random, own, keys, peers, members, queries, resting, strangers, answers,
         of_stranger, of_known, of_member, counters] = *this;
  // Configuration, and what the control thread reports.
  (void)config, (void)random, (void)keys, (void)members;
  (void)queries, (void)resting, (void)strangers;  // set by the peers
  // Addresses that share a limit depend on a secret, which is new.
  (void)of_stranger, (void)of_known, (void)of_member;
  // Peers know the gateway by its instance. Its epoch grows, because its properties may differ.
  uint32_t epoch = own.epoch;
  state(own.instance, epoch);
  state.Require(own.instance != 0, "gateway has no instance");
  if (state.reading()) own.epoch = epoch + 1;
  const uint32_t count = state.Count(peers.size(), kMostListed);
  auto at = peers.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    wire::Gid gid = state.reading() ? wire::Gid{} : at->first;
    cm::HandOver(state, gid);
    if (!state.reading()) {
      HandOverPeer(state, gid, (at++)->second);
      continue;
    }
    // The control thread has reported nothing of peers, and asks none, before the state is read.
    const auto [made, fresh] = peers.try_emplace(gid);
    if (!state.Require(fresh, "peer is there twice")) break;
    HandOverPeer(state, gid, made->second);
    if (made->second.known()) actions.acquaintances.push_back({gid, true});
  }
  answers.HandOver(state);
  HandOverCounters(state, counters);
}

// Counts what owners and listeners hold, and puts deadlines and waiting requests where their
// connections and ids are found.
void Core::Resume(StateStream& state) {
  for (auto& [handle, id] : ids) {
    state.Require(handle == id.handle && (id.connection == 0 || ConnectionOf(id) != nullptr),
                  "connection of an id is missing");
    Holdings& held = HoldingsOf(id.owner);
    ++held.ids;
    Link<&Id::of_owner>(held.first, id);
    const TimePoint deadline = std::exchange(id.deadline, kNever);
    SetDeadline(id, deadline);
  }
  std::vector<Connection*> orphans;
  connections.ForEach([&](Connection& connection) {
    if (connection.id == CmHandle{}) orphans.push_back(&connection);
    const TimePoint deadline = std::exchange(connection.deadline, kNever);
    SetDeadline(connection, deadline);
    Id* const id = IdOf(connection);
    state.Require(connection.id == CmHandle{} ||
                      (id != nullptr && id->connection == connection.local_comm_id),
                  "id of a connection is missing");
    state.Require(window.Resume(LineOf(connection), connection.has_place, connection.ticket,
                                connection.local_comm_id),
                  "request has no place at its listener");
    if (id == nullptr || connection.active || connection.fetched) return;
    if (Id* const listener = FindId(id->listener); listener != nullptr)
      backlog.Enter(*listener, *id);
  });
  std::ranges::sort(orphans, {}, [](const Connection* one) { return one->created; });
  for (Connection* const orphan : orphans) ListOrphan(*orphan);
  for (const auto& [peer, id] : undiscovered)
    state.Require(connections.ByLocalId(id) != nullptr, "request that waits is missing");
  state.Require(window.Consistent(), "window of a listener is impossible");
}

// Hands over the ids whose peer withdrew its request before the program fetched it.
void Core::HandOverWithdrawn(StateStream& state) {
  std::vector<CmHandle> withdrawn;
  for (const auto& [handle, id] : ids) {
    const Id* const listener = FindId(id.listener);
    if (id.connection == 0 && listener != nullptr && Backlog::Contains(*listener, id))
      withdrawn.push_back(handle);
  }
  const uint32_t count = state.Count(withdrawn.size(), kMostListed);
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    CmHandle handle = state.reading() ? CmHandle{} : withdrawn[i];
    cm::HandOver(state, handle);
    if (!state.reading()) continue;
    Id* const id = FindId(handle);
    Id* const listener = id == nullptr ? nullptr : FindId(id->listener);
    if (state.Require(
            listener != nullptr && id->connection == 0 && !Backlog::Contains(*listener, *id),
            "withdrawn request is missing")) {
      backlog.Enter(*listener, *id);
    }
  }
}

void Core::HandOver(StateStream& state, CmActions& actions) {
  const StateRecord record(state, StateKind::kConnectionManager);
  auto& [settings, source, local_addresses, all_ids, kept, requests, held_by, all_connections,
         answered, ending, pool_of_session, all_ports, due, early_requests, peers, request_window,
         waits_for_discovery, stranger_limit, stranger_limits, member_limits, counts, guids,
         last_handle, kept_wanted] = *this;
  // Configuration and free lists.
  (void)settings, (void)source, (void)local_addresses, (void)kept, (void)kept_wanted;
  (void)requests, (void)held_by, (void)due, (void)answered,
      (void)ending;       // counted and entered again (Resume)
  (void)pool_of_session;  // a link
  // Addresses that share a limit depend on a secret, which is new.
  (void)stranger_limits, (void)member_limits;
  state.Require(!state.reading() || (all_ids.empty() && all_connections.size() == 0),
                "the connection manager is in use");
  state(guids[0], guids[1], last_handle);
  HandOverCounters(state, counts);
  const uint32_t count = state.Count(all_ids.size(), kMostListed);
  if (state.reading()) {
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      Id id;
      cm::HandOver(state, id);
      state.Require(all_ids.try_emplace(id.handle, id).second, "id is there twice");
    }
  } else {
    for (auto& [handle, id] : all_ids) cm::HandOver(state, id);
  }
  all_connections.HandOver(state, record.version());
  all_ports.HandOver(state);
  early_requests.HandOver(state);
  peers.HandOver(state, actions);
  request_window.HandOver(state);
  const uint32_t waiting = state.Count(waits_for_discovery.size(), kMostListed);
  auto at = waits_for_discovery.begin();
  for (uint32_t i = 0; i < waiting && state.ok(); ++i) {
    auto [peer, id] = state.reading() ? std::pair<wire::Gid, uint32_t>{} : *at;
    cm::HandOver(state, peer);
    state(id);
    if (state.reading()) waits_for_discovery.insert({peer, id});
    if (!state.reading()) ++at;
  }
  stranger_limit.HandOver(state);
  if (state.reading() && state.ok()) Resume(state);
  if (record.version() >= 2 && state.ok()) HandOverWithdrawn(state);
}

void CmEngine::HandOverInstance(StateStream& state) { core_->discovery.HandOverInstance(state); }

void CmEngine::HandOver(StateStream& state, CmActions& actions) { core_->HandOver(state, actions); }

}  // namespace rocegw::cm
