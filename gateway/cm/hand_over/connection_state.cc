// SPDX-License-Identifier: Apache-2.0
// State of connections, ids and what they wait for, for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include "gateway/cm/hand_over/connection_state.h"

#include <algorithm>
#include <map>

#include "gateway/cm/connection/connection_table.h"
#include "gateway/cm/connection/early_requests.h"
#include "gateway/cm/connection/request_window.h"
#include "gateway/cm/hand_over/values_state.h"
#include "gateway/cm/path/port_table.h"

namespace rocegw::cm {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

// Limit of lists that CmConfig bounds otherwise.
constexpr uint32_t kMost = 1u << 20;
constexpr Duration kLongestInterval = Seconds(3600);

void HandOverEce(StateStream& state, EceRecord& ece) {
  auto& [sent, received, agreed, verdict] = ece;
  cm::HandOver(state, sent);
  cm::HandOver(state, received);
  state(agreed);
  // Text for display.
  if (state.reading()) verdict = "concluded before the gateway was replaced";
}

void HandOverSchedule(StateStream& state, ResendSchedule& schedule) {
  auto& [interval, longest, give_up] = schedule;
  state(interval, longest, give_up);
  const auto possible = [](Duration one) { return one.ns >= 0 && one <= kLongestInterval; };
  state.Require(possible(interval) && possible(longest), "interval of a message is impossible");
}

void HandOverLine(StateStream& state, RequestWindow::Line& line) {
  auto& [owner, peer, service_id] = line;
  state(owner);
  cm::HandOver(state, peer);
  state(service_id);
}

}  // namespace

void HandOver(StateStream& state, Connection& connection) {
  const StateRecord record(state, StateKind::kCmConnection);
  auto& [local_comm_id, remote_comm_id, phase, active, owner, id, path, peer_gsi, transaction_id,
         disconnect_transaction_id, remote_ca_guid, local_qpn, remote_qpn, local_psn, remote_psn,
         path_mtu, responder_resources, initiator_depth, retry_count, rnr_retry_count, ack_timeout,
         peer_response_timeout, peer_cm_retries, ece, asked_for_time, fetched, reason, created,
         service_id, ticket, has_place, message, has_pending, schedule, deadline, orphan] =
      connection;
  (void)orphan;  // listed again (Core::Resume)
  state(local_comm_id, remote_comm_id);
  state.Enum(phase, static_cast<ConnectionState>(kConnectionStates - 1));
  state(active, owner);
  HandOver(state, id);
  HandOver(state, path);
  state(peer_gsi, transaction_id, disconnect_transaction_id, remote_ca_guid, local_qpn, remote_qpn,
        local_psn, remote_psn, path_mtu, responder_resources, initiator_depth, retry_count,
        rnr_retry_count, ack_timeout, peer_response_timeout, peer_cm_retries);
  HandOverEce(state, ece);
  state(asked_for_time, fetched, reason, created, service_id, ticket, has_place);
  const bool parameters = state.Carry(std::holds_alternative<ConnectParams>(message));
  if (state.reading()) {
    if (parameters) message = ConnectParams();
    if (!parameters) message = wire::MadBytes{};
  }
  if (auto* const future = std::get_if<ConnectParams>(&message)) HandOver(state, *future);
  if (auto* const sent = std::get_if<wire::MadBytes>(&message)) state.Bytes(*sent);
  state(has_pending);
  HandOverSchedule(state, schedule);
  state(deadline);
  state.Require(!has_pending || !parameters, "message of a connection is missing");
  state.Require(local_comm_id != 0, "connection has no communication ID");
}

// Each index names the newest of several connections, which the order of the entries tells no
// reader: the indices are handed over too.
void ConnectionTable::HandOver(StateStream& state, uint16_t version) {
  auto& [by_local_id, by_remote_id, by_peer, by_sidr_request, kept_connections, kept_by_node,
         kept_by_address] = *this;
  (void)kept_connections, (void)kept_by_node, (void)kept_by_address;  // free lists
  const uint32_t count = state.Count(by_local_id.size(), kMost);
  if (state.reading()) {
    by_local_id.clear();
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      Connection one;
      cm::HandOver(state, one);
      state.Require(by_local_id.try_emplace(one.local_comm_id, one).second,
                    "communication ID is there twice");
    }
  } else {
    for (auto& [id, connection] : by_local_id) cm::HandOver(state, connection);
  }
  const auto index = [&](auto& map, auto each, auto complete, auto matches) {
    const uint32_t entries = state.Count(map.size(), kMost);
    auto at = map.begin();
    if (state.reading()) map.clear();
    for (uint32_t i = 0; i < entries && state.ok(); ++i) {
      auto key = state.reading() ? typename std::decay_t<decltype(map)>::key_type{} : at->first;
      uint32_t id = state.reading() ? 0 : at->second;
      each(key.first);
      state(key.second, id);
      if (!state.reading()) {
        ++at;
        continue;
      }
      const Connection* const found = ByLocalId(id);
      if (found != nullptr) complete(*found, key);
      state.Require(found != nullptr && matches(*found, key), "connection of an index is missing");
      state.Require(map.try_emplace(key, id).second, "index names a peer twice");
    }
  };
  index(
      by_remote_id,
      [&](Node& node) {
        if (version >= 2) cm::HandOver(state, node.first);
        state(node.second);
      },
      [&](const Connection& one, auto& key) {
        if (version < 2) key.first.first = one.path.destination;
      },
      [](const Connection& one, const auto& key) {
        return key.first == Node(one.path.destination, one.remote_ca_guid) &&
               one.remote_comm_id == key.second;
      });
  const auto is_complete = [](const Connection&, const auto&) {};
  index(
      by_peer, [&](wire::Gid& peer) { cm::HandOver(state, peer); }, is_complete,
      [](const Connection& one, const auto& key) {
        return one.path.destination == key.first && one.remote_qpn.value == key.second;
      });
  index(
      by_sidr_request, [&](wire::Gid& peer) { cm::HandOver(state, peer); }, is_complete,
      [](const Connection& one, const auto& key) {
        return one.path.destination == key.first && one.remote_comm_id == key.second;
      });
}

void HandOver(StateStream& state, Id& id) {
  auto& [handle, owner, name, port_space, qp_type, phase, local, remote, holds_port, reuse_address,
         af_only, type_of_service, has_ack_timeout, ack_timeout, device, source_gid,
         destination_gid, source_gid_index, mtu, path_mtu, hop_limit, traffic_class, flow_label,
         psn, connection, listener, backlog, waiting_requests, deadline, first_request, of_owner,
         of_listener] = id;
  (void)first_request, (void)of_owner, (void)of_listener;  // entered again (Core::Resume)
  HandOver(state, handle);
  state(owner, name);
  HandOver(state, port_space);
  HandOver(state, qp_type);
  state.Enum(phase, IdState::kDisconnected);
  HandOver(state, local);
  HandOver(state, remote);
  state(holds_port, reuse_address, af_only, type_of_service, has_ack_timeout, ack_timeout, device);
  HandOver(state, source_gid);
  HandOver(state, destination_gid);
  state(source_gid_index, mtu, path_mtu, hop_limit, traffic_class, flow_label, psn, connection);
  HandOver(state, listener);
  state(backlog, deadline);
  if (state.reading()) waiting_requests = 0;  // counted again (Core::HandOver)
}

void PortTable::HandOver(StateStream& state) {
  auto& [owner_of_address, pool_of_session, shares, bindings, listeners, kept] = *this;
  (void)owner_of_address, (void)pool_of_session, (void)kept;  // links, and a free list
  (void)shares;                                               // taken again
  const uint32_t count = state.Count(bindings.size(), kMost);
  auto at = bindings.begin();
  if (state.reading()) {
    bindings.clear();
    listeners.clear();
  }
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Binding binding = state.reading() ? Binding{} : at->second;
    auto [space, port, unused] = state.reading() ? Key{} : at->first;
    (void)unused;  // the binding's
    cm::HandOver(state, space);
    state(port);
    auto& [id, owner, address, reuse, af_only, automatic, listening, holds, scope, pool] = binding;
    cm::HandOver(state, id);
    state(owner);
    cm::HandOver(state, address);
    state(reuse, af_only, automatic, listening);
    if (!state.reading()) {
      ++at;
      continue;
    }
    holds = false;
    scope = PoolOf(binding);
    pool = pool_of_session ? pool_of_session(owner) : 0;
    if (!state.Require(address.port == port, "binding has another port")) break;
    if (!automatic) Hold(space, binding);
    const Key key{space, port, id};
    const auto [made, fresh] = bindings.emplace(key, binding);
    state.Require(fresh, "binding is there twice");
    if (listening) listeners.emplace(key, &made->second);
  }
}

void EarlyRequests::HandOver(StateStream& state) {
  auto& [most, last_number, held, names, by_source, ranks] = *this;
  (void)last_number, (void)names, (void)by_source, (void)ranks;  // entered again
  const uint32_t count = state.Count(held.size(), kMost);
  state.Require(count <= most || !state.reading(), "too many early requests");
  TimePoint last{INT64_MIN};
  auto at = held.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Held one = state.reading() ? Held{} : (at++)->second;
    auto& [mad, meta, source_qpn, until] = one;
    wire::MadBytes bytes{};
    if (!state.reading()) wire::EncodeMad(mad, bytes);
    state.Bytes(bytes);
    if (state.reading()) {
      const bool valid = wire::DecodeMad(bytes, mad) == metrics::DropReason::kNone &&
                         std::holds_alternative<wire::CmReq>(mad.body);
      if (!state.Require(valid, "early request is malformed")) break;
    }
    cm::HandOver(state, meta);
    state(source_qpn, until);
    state.Require(until >= last, "early requests are out of order");
    last = until;
    if (!state.reading() || !state.ok()) continue;
    if (state.Require(!names.contains(NameOf(one)), "early request is there twice")) Enter(one);
  }
}

void RequestWindow::HandOver(StateStream& state) {
  auto& [window_config, queues, kept_queues, kept_waiting, freed, turns, last_ticket] = *this;
  (void)kept_queues, (void)kept_waiting, (void)turns;  // free lists, and a result
  state.Require(freed.empty(), "requests wait for their turn");
  state(last_ticket);
  const uint32_t count = state.Count(queues.size(), kMost);
  auto at = queues.begin();
  if (state.reading()) queues.clear();
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    Line line = state.reading() ? Line{} : at->first;
    HandOverLine(state, line);
    Queue& queue = state.reading() ? queues[line] : at->second;
    auto& [room, taken, shrink_after, waiting] = queue;
    (void)taken, (void)waiting;  // the connections take their slots and tickets again (Resume)
    state(room, shrink_after);
    state.Require(room >= std::min(window_config.first, window_config.least) &&
                      room <= std::max(window_config.first, window_config.most),
                  "window of a listener is out of range");
    if (!state.reading()) ++at;
  }
}

bool RequestWindow::Resume(const Line& line, bool has_slot, uint64_t ticket, uint32_t connection) {
  if (!has_slot && ticket == 0) return true;
  const auto at = queues_.find(line);
  if (at == queues_.end() || (has_slot && ticket != 0) || ticket > last_ticket_) return false;
  if (has_slot) {
    ++at->second.taken;
    return true;
  }
  return at->second.waiting.try_emplace(ticket, connection).second;
}

bool RequestWindow::Consistent() const {
  return std::ranges::all_of(queues_, [](const auto& entry) { return entry.second.taken != 0; });
}

}  // namespace rocegw::cm
