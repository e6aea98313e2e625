// SPDX-License-Identifier: Apache-2.0
// State of all sessions, and of what they share, for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/attach/attach_server.h"
#include "gateway/session/hand_over/objects_state.h"
#include "gateway/session/hand_over/session_versions.h"
#include "gateway/session/session_server.h"

namespace rocegw::session {

using hand_over::StateKind;
using hand_over::StateRecord;
using hand_over::StateStream;

namespace {

constexpr uint32_t kMostSessions = 1u << 20;
// The tries of one take-over take seconds.
constexpr Duration kRestlessFor = Seconds(60);
constexpr uint32_t kMostChannels = 1u << 16;

void HandOverPeer(StateStream& state, Peer& peer) {
  auto& [pid, uid, gid, start_time, comm, cgroup, process] = peer;
  (void)process;  // a descriptor
  state(pid, uid, gid, start_time);
  HandOverText(state, comm);
  HandOverText(state, cgroup);
}

}  // namespace

std::string AttachServer::NotHandedOver(const hand_over::StateVersions& reader) const {
  const uint16_t version = reader.Of(StateKind::kSession);
  for (const auto& [id, connection] : connections_) {
    if (const char* const reason = connection->session->NotHandedOver(version)) {
      const Peer& peer = connection->session->peer();
      return peer.comm + " (pid " + std::to_string(peer.pid) + ") " + reason;
    }
  }
  return "";
}

void AttachServer::OfferSessions(OfferedFds& fds) const {
  for (const auto& [id, connection] : connections_) {
    const std::string name = std::to_string(id);
    const Peer& peer = connection->session->peer();
    fds.push_back({FdKind::kClientSocket, name, connection->messages.socket().fd()});
    if (peer.process.valid()) fds.push_back({FdKind::kClientProcess, name, peer.process.get()});
    connection->session->Offer(fds);
  }
}

void AttachServer::HandOver(StateStream& state, uint16_t version) {
  state(next_id_);
  std::vector<uint32_t> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  std::ranges::sort(ids);
  const uint32_t count = state.Count(ids.size(), kMostSessions);
  size_t ahead = 0;
  unchanged_ = true;
  for (const auto& [id, seen] : ahead_) {
    if (!state.reading() && !connections_.contains(id))
      restless_pools_[seen.pool] = ControlLoop::Now();
  }
  for (uint32_t i = 0; i < count && state.ok(); ++i) {
    uint32_t id = state.reading() ? 0 : ids[i];
    if (version < 2 || !state.Carry(ahead_.contains(id))) {
      HandOverSession(state, id, version);
      continue;
    }
    state(id);
    ++ahead;
    if (state.reading()) {
      state.Require(ahead_.contains(id), "session was not handed over before");
    } else {
      if (StateOf(id, *state.reader()) == ahead_[id].state) continue;
      unchanged_ = false;
      restless_pools_[ahead_[id].pool] = ControlLoop::Now();
    }
  }
  unchanged_ = unchanged_ && ahead == ahead_.size();
  state.Require(unchanged_, "a program changed or ended");
}

// Writes or reads one session. A writer's `id` is the session's number.
void AttachServer::HandOverSession(StateStream& state, uint32_t id, uint16_t version) {
  Connection* connection = state.reading() ? nullptr : connections_.at(id).get();
  std::string pool, path;
  Peer peer;
  if (connection != nullptr) {
    const Peer& known = connection->session->peer();
    pool = connection->session->pool().name();
    path = connection->path;
    peer = {known.pid, known.uid, known.gid, known.start_time, known.comm, known.cgroup, {}};
  }
  state(id);
  HandOverText(state, pool);
  HandOverText(state, path);
  HandOverPeer(state, peer);
  tenant::SlotLimits limits;
  if (connection != nullptr && connection->session->slot() != nullptr)
    limits = connection->session->slot()->limits();
  if (version >= 2) state(limits.qps, limits.bytes_per_second);
  state.Require(version >= 2 || !limits.any(), "limits of an attach socket");
  tenant::Pool* const of = services_.pools.FindPool(pool);
  if (!state.Require(of != nullptr, "pool of a session is missing")) return;
  std::vector<tenant::Charge> fresh(2);
  std::vector<tenant::Charge>& charges = connection == nullptr ? fresh : connection->charges;
  PoolRules::HandOver(state, *of, Resource::kSessions, charges[0]);
  PoolRules::HandOver(state, *of, Resource::kDescriptors, charges[1]);
  if (connection == nullptr) {
    UniqueFd socket, process;
    if (inherited_ != nullptr) {
      socket = inherited_->Take(FdKind::kClientSocket, std::to_string(id));
      peer.process = inherited_->Take(FdKind::kClientProcess, std::to_string(id));
    }
    const bool possible = socket.valid() && id != 0 && id < next_id_ && !connections_.contains(id);
    if (!state.Require(possible, "session without a connection")) return;
    ProgramConnection program(std::move(socket), StrangersOf(*of), services_.ReceiverOf(*of));
    connection = &Add(id, std::move(program), *of, path, std::move(peer),
                      services_.slots.Of(*of, path, limits), std::move(fresh));
  }
  connection->session->HandOver(state, inherited_);
  if (state.reading() && state.ok()) connection->session->LinkAgain();
}

std::vector<uint8_t> AttachServer::StateOf(uint32_t id, const hand_over::StateVersions& reader) {
  std::vector<uint8_t> bytes;
  const ClientSession& session = *connections_.at(id)->session;
  const uint16_t version = reader.Of(StateKind::kSession);
  if (session.Unsettled() != nullptr || session.NotHandedOver(version) != nullptr) return bytes;
  StateStream stream(bytes, TimePoint{}, reader);
  // The newest version has all fields.
  HandOverSession(stream, id, UINT16_MAX);
  if (!stream.ok()) bytes.clear();
  return bytes;
}

void AttachServer::LookAtSessions(const hand_over::StateVersions& reader) {
  ahead_.clear();
  if (!SessionsGoAhead(reader)) return;
  const TimePoint now = ControlLoop::Now();
  std::erase_if(restless_pools_,
                [now](const auto& pool) { return pool.second + kRestlessFor < now; });
  for (const auto& [id, connection] : connections_) {
    const std::string& pool = connection->session->pool().name();
    if (!restless_pools_.contains(pool)) ahead_[id] = {pool, StateOf(id, reader)};
  }
}

void AttachServer::HandOverUnchanged(StateStream& state, uint16_t version) {
  if (!state.reading()) {
    std::erase_if(ahead_, [&](const auto& seen) {
      const auto& [id, known] = seen;
      return known.state.empty() || !connections_.contains(id) ||
             StateOf(id, *state.reader()) != known.state;
    });
  }
  state(next_id_);
  const uint32_t count = state.Count(ahead_.size(), kMostSessions);
  auto at = ahead_.begin();
  for (uint32_t i = 0; i < count && state.ok(); ++i)
    HandOverSession(state, state.reading() ? 0 : (at++)->first, version);
  if (!state.reading()) return;
  for (const auto& [id, connection] : connections_) ahead_[id] = {};
}

void AttachServer::HandOverShared(StateStream& state) {
  std::map<uint32_t, ClientSession*> in_order;
  for (const auto& [id, connection] : connections_) in_order[id] = connection->session.get();
  for (const auto& [id, session] : in_order)
    if (state.ok()) session::HandOverShared(state, *session);
}

int AttachServer::link_error() const {
  int error = 0;
  ForEach([&](const ClientSession& session) {
    if (session.link_error() != 0) error = session.link_error();
  });
  return error;
}

// The second state that a reader gets has the same numbers as the first one.
void SessionServer::HandOverChannels(StateStream& state) {
  const auto workers = static_cast<uint32_t>(services_.workers.worker_count());
  std::vector<ChannelNumbers> all = channel_numbers_;
  const uint32_t count = state.Count(all.size(), workers);
  state.Require(count == 0 || count == workers, "numbers of channels are missing");
  if (state.reading()) all.resize(state.ok() ? count : 0);
  for (ChannelNumbers& numbers : all) {
    state(numbers.acceptor);
    state.Vector(numbers.numbers, kMostChannels, [&](Qpn& number) { state(number); });
  }
  state.Require(channel_numbers_.empty() || all == channel_numbers_, "numbers of channels changed");
  if (state.reading() && state.ok()) channel_numbers_ = std::move(all);
}

// The channels are the first message to a worker.
void SessionServer::HandOverFoundation(StateStream& state) {
  const StateRecord record(state, StateKind::kFoundation);
  cm_.HandOverInstance(state);
  HandOverChannels(state);
  if (!state.reading() || !state.ok()) return;
  cm_.OfferChannels(Acceptors());
  if (services_.options.gateways.channels) UseChannels();
}

void SessionServer::HandOverNumbers(StateStream& state) {
  const StateRecord record(state, StateKind::kNumbers);
  services_.qpns.HandOver(state);
  services_.keys.HandOver(state);
  HandOverChannels(state);
  if (state.ok()) cm_.HandOver(state);
  if (state.reading() && state.ok()) cm_.CarryOut();
}

void SessionServer::HandOverUnchanged(StateStream& state) {
  const StateRecord record(state, StateKind::kSessions);
  attach_.HandOverUnchanged(state, record.version());
}

void SessionServer::HandOverSessions(StateStream& state) {
  const StateRecord record(state, StateKind::kSessions);
  attach_.HandOver(state, record.version());
  if (record.version() >= 2 && state.ok()) attach_.HandOverShared(state);
  if (record.version() >= 3 && state.ok()) services_.xrc.HandOver(state);
  if (record.version() >= 4 && state.ok()) HandOverPoolCounts(state);
  if (!state.reading() || !state.ok()) return;
  std::vector<Qpn> used;
  attach_.ForEach([&](const ClientSession& session) {
    session.objects().qps.ForEach([&](uint32_t, const Qp& qp) { used.push_back(qp.qpn); });
    session.objects().groups.ForEach(
        [&](uint32_t, const EndpointGroup& group) { used.push_back(group.number); });
  });
  // Several sessions may have one queue pair of an XRC domain.
  std::ranges::sort(used, {}, &Qpn::value);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (const ChannelNumbers& numbers : channel_numbers_) {
    used.push_back(numbers.acceptor);
    used.insert(used.end(), numbers.numbers.begin(), numbers.numbers.end());
  }
  services_.qpns.KeepOnly(used, ControlLoop::Now());
}

}  // namespace rocegw::session
