// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/core.h"

#include <algorithm>
#include <variant>

#include "gateway/base/invariant.h"
#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/id_list.h"

namespace rocegw::cm {
namespace {

constexpr size_t kRefilledAtOnce = 64;

}  // namespace

Core::Core(const CmConfig& settings, RandomSource& source)
    : config(settings),
      random(source),
      answered_orphans(settings.max_answered_orphans),
      ending_orphans(settings.max_ending_orphans),
      ports(settings.first_ephemeral_port, settings.last_ephemeral_port),
      early(settings.max_early_requests),
      discovery(settings.discovery, source),
      window(settings.request_window),
      strangers(settings.unsolicited_rate, settings.unsolicited_burst),
      strangers_by_source(DrawKey(source), settings.source_unsolicited_rate,
                          settings.source_unsolicited_burst),
      members_by_source(DrawKey(source), settings.source_unsolicited_rate,
                        settings.source_unsolicited_burst),
      guid_key(DrawKey(source)) {
  ports.pool_of = pool_of;
}

uint64_t Core::CaGuidFor(const wire::Gid& peer) const {
  const uint64_t guid = SipHash(guid_key, peer.bytes);
  return guid != 0 ? guid : 1;
}

void Core::Keep(size_t connections_wanted) {
  wanted = connections_wanted;
  kept_ids.SetWanted(wanted);
  backlog.Keep(wanted);
  connections.Keep(wanted);
  ports.Keep(wanted);
  deadlines.Keep(wanted);
  window.Keep(wanted);
}

bool Core::Refill() {
  owners.Reserve(owners.size() + wanted);
  const bool of_ids = kept_ids.Refill(ids, kRefilledAtOnce);
  const bool of_backlog = backlog.Refill(kRefilledAtOnce);
  const bool of_connections = connections.Refill(kRefilledAtOnce);
  const bool of_ports = ports.Refill(kRefilledAtOnce);
  const bool of_deadlines = deadlines.Refill(kRefilledAtOnce);
  const bool of_window = window.Refill(kRefilledAtOnce);
  return of_ids || of_backlog || of_connections || of_ports || of_deadlines || of_window;
}

const LocalAddress* Core::FindAddress(const wire::Gid& gid) const {
  const auto at = std::find_if(addresses.begin(), addresses.end(),
                               [&gid](const LocalAddress& address) { return address.gid == gid; });
  return at == addresses.end() ? nullptr : &*at;
}

PeerKind Core::Ask(const wire::Gid& source, const wire::Gid& peer, Step& step) {
  if (peer.IsZero() || FindAddress(peer) != nullptr) return PeerKind::kRnic;
  return discovery.Ask(source, peer, step.now, step.actions);
}

void Core::AskStranger(const wire::Gid& source, const wire::Gid& peer, Step& step) {
  if (peer.IsZero() || FindAddress(peer) != nullptr) return;
  discovery.AskStranger(source, peer, step.now, step.actions);
}

NegotiationView Core::ViewOf(const Connection& connection) const {
  const wire::Gid& peer = connection.path.destination;
  // Authentication is not negotiated per connection.
  constexpr uint32_t kNegotiable = ~uint32_t{wire::kOptionAuthentication};
  return {config.discovery.vendor_id, discovery.own().features & kNegotiable,
          discovery.KindOf(peer), discovery.FeaturesOf(peer) & kNegotiable};
}

Id* Core::FindId(CmHandle handle) {
  const auto at = ids.find(handle);
  return at == ids.end() ? nullptr : &at->second;
}

const Id* Core::FindId(CmHandle handle) const {
  const auto at = ids.find(handle);
  return at == ids.end() ? nullptr : &at->second;
}

Core::Holdings& Core::HoldingsOf(SessionId owner) {
  owners.Insert(owner.value, {});
  return *owners.Find(owner.value);
}

void Core::ForgetIfNothing(SessionId owner) {
  if (owners.Find(owner.value)->ids == 0) owners.Erase(owner.value);
}

Connection* Core::ConnectionOf(const Id& id) {
  return id.connection == 0 ? nullptr : connections.ByLocalId(id.connection);
}

Id* Core::NewId(CmHandle handle, SessionId owner) {
  if (ids.size() >= config.max_ids || ids.contains(handle)) return nullptr;
  const Holdings* const known = owners.Find(owner.value);
  if (known != nullptr && known->ids >= config.max_ids_per_owner) return nullptr;
  Id& id = kept_ids.Insert(ids, handle, Id())->second;
  Holdings& held = HoldingsOf(owner);
  ++held.ids;
  Link<&Id::of_owner>(held.first, id);
  id.handle = handle;
  id.owner = owner;
  id.psn = Psn(static_cast<uint32_t>(random.Next() >> 32));
  return &id;
}

void Core::EraseId(Id& id) {
  SetDeadline(id, kNever);
  if (id.holds_port) ports.Unbind(id.port_space, id.local.port, id.handle);
  LeaveBacklog(id);
  while (id.first_request != nullptr) LeaveBacklog(*id.first_request);
  Holdings& held = HoldingsOf(id.owner);
  --held.ids;
  Unlink<&Id::of_owner>(held.first, id);
  ForgetIfNothing(id.owner);
  kept_ids.Erase(ids, ids.find(id.handle));
}

Connection& Core::NewConnection(Id& id, bool active, Step& step) {
  Connection& connection = connections.Create(random);
  connection.active = active;
  connection.id = id.handle;
  connection.owner = id.owner;
  connection.local_psn = id.psn;
  connection.created = step.now;
  id.connection = connection.local_comm_id;
  return connection;
}

void Core::DropConnection(Connection& connection) {
  SetDeadline(connection, kNever);
  LeaveWindow(connection, RequestWindow::End::kGone, {});
  if (connection.ticket != 0) window.Forget(LineOf(connection), connection.ticket);
  undiscovered.erase({connection.path.destination, connection.local_comm_id});
  Separate(connection);
  if (connection.orphan.list != nullptr) connection.orphan.list->Remove(connection);
  connections.Erase(connection);
}

void Core::LeaveBacklog(Id& id) {
  if (Connection* const connection = ConnectionOf(id); connection != nullptr)
    connection->fetched = true;
  if (Id* const listener = FindId(id.listener); listener != nullptr) backlog.Leave(*listener, id);
}

void Core::LeaveWindow(Connection& connection, RequestWindow::End end, TimePoint now) {
  if (!connection.has_place) return;
  connection.has_place = false;
  window.Leave(LineOf(connection), end, now);
}

void Core::Separate(Connection& connection) {
  if (Id* id = IdOf(connection); id != nullptr) id->connection = 0;
  connection.id = {};
}

void Core::Orphan(Connection& connection) {
  Separate(connection);
  ListOrphan(connection);
}

void Core::ListOrphan(Connection& connection) {
  if (connection.id != CmHandle{}) return;
  const uint64_t pool =
      connection.orphan.list == nullptr ? pool_of(connection.owner) : connection.orphan.pool;
  if (connection.orphan.list != nullptr) connection.orphan.list->Remove(connection);
  // The peer of a withdrawn REP may believe in the connection, as that of an unanswered DREQ does.
  const bool withdrawn =
      connection.state == ConnectionState::kRejected && connection.local_qpn != kInvalidQpn;
  const bool ends = withdrawn || connection.state == ConnectionState::kDreqSent;
  (ends ? ending_orphans : answered_orphans).Add(connection, pool);
}

void Core::DropExcessOrphans() {
  for (const Orphans* list : {&answered_orphans, &ending_orphans})
    while (Connection* const excess = list->Excess()) DropConnection(*excess);
}

void Core::Send(const Connection& connection, uint64_t transaction_id, const wire::CmBody& body,
                uint32_t modifier, Step& step) {
  SendMad& out = step.actions.mads.emplace_back();
  out.path = connection.path;
  out.destination = connection.peer_gsi;
  wire::EncodeMad({transaction_id, modifier, body}, out.bytes);
  ++counters.mads_sent;
}

void Core::SendUntilAnswered(Connection& connection, uint64_t transaction_id,
                             const wire::CmBody& body, uint32_t modifier, Duration slow, int tries,
                             Step& step) {
  Send(connection, transaction_id, body, modifier, step);
  connection.message = step.actions.mads.back().bytes;
  connection.has_pending = true;
  connection.schedule = ResendSchedule::Start(step.now, config.first_resend, slow, tries);
  SetDeadline(connection, connection.schedule.Next(step.now));
}

void Core::SendRepeatedly(Connection& connection, const wire::CmBody& body, Duration span,
                          Step& step) {
  Send(connection, connection.transaction_id, body, 0, step);
  connection.message = step.actions.mads.back().bytes;
  connection.has_pending = true;
  connection.schedule = {config.first_resend, SlowInterval(), step.now + span};
  SetDeadline(connection, connection.schedule.Next(step.now));
}

void Core::Resend(const Connection& connection, Step& step) {
  const auto* const message = std::get_if<wire::MadBytes>(&connection.message);
  if (!ROCEGW_INVARIANT(message != nullptr, "cm-resend-of-what-was-sent")) return;
  SendMad& out = step.actions.mads.emplace_back();
  out.path = connection.path;
  out.destination = connection.peer_gsi;
  out.bytes = *message;
  ++counters.mads_sent;
  ++counters.mads_resent;
}

void Core::Answered(Connection& connection) {
  LeaveWindow(connection, RequestWindow::End::kAnswered, {});
  connection.has_pending = false;
  SetDeadline(connection, kNever);
}

void Core::SetDeadline(Connection& connection, TimePoint deadline) {
  deadlines.Move({DeadlineKey::Kind::kConnection, connection.local_comm_id}, connection.deadline,
                 deadline);
}

void Core::SetDeadline(Id& id, TimePoint deadline) {
  deadlines.Move({DeadlineKey::Kind::kId, id.handle.value}, id.deadline, deadline);
}

// Members have limits of their own: strangers from many addresses use up the common limit.
bool Core::MayAnswer(const wire::Gid& source, TimePoint now) {
  if (discovery.IsMember(source)) return members_by_source.Take(source.bytes, now);
  return strangers_by_source.Take(source.bytes, now) && strangers.Take(now);
}

bool Core::Reply(const Inbound& inbound, const wire::CmBody& body, Step& step) {
  if (!MayAnswer(inbound.meta.source, step.now)) return false;
  SendMad& out = step.actions.mads.emplace_back();
  out.path.source = inbound.meta.destination;
  out.path.destination = inbound.meta.source;
  out.path.traffic_class = wire::WithoutEcn(inbound.meta.traffic_class);
  out.destination = inbound.source_qpn;
  wire::EncodeMad({inbound.mad.transaction_id, 0, body}, out.bytes);
  ++counters.mads_sent;
  return true;
}

void Core::Emit(const Id& id, EventType type, int status, Step& step) {
  Emit(id, type, status, {}, step);
}

void Core::Emit(const Id& id, EventType type, int status, const ConnectParams& param, Step& step) {
  CmEvent& event = step.actions.events.emplace_back();
  event.owner = id.owner;
  event.id = id.handle;
  event.name = id.name;
  event.type = type;
  event.status = status;
  event.param = param;
  event.info = InfoOf(id);
}

void Core::EmitRequest(const Id& id, const ConnectParams& param, Step& step) {
  Emit(id, EventType::kConnectRequest, 0, param, step);
  CmEvent& event = step.actions.events.back();
  event.listener = id.listener;
  event.name = FindId(id.listener)->name;
}

// Clamps the timewait: the peer chooses the code, and must not hold a QPN for hours.
Duration Core::TimewaitOf(const Connection& connection) const {
  return std::min(CodeToDuration(connection.ack_timeout), config.longest_timewait);
}

void Core::EnterTimewait(Connection& connection, Step& step) {
  Answered(connection);
  connection.state = ConnectionState::kTimewait;
  const TimePoint until = step.now + TimewaitOf(connection);
  SetDeadline(connection, until);
  if (connection.local_qpn != kInvalidQpn) {
    step.actions.quarantined.push_back({connection.owner, connection.local_qpn, until});
  }
  ListOrphan(connection);
}

void Core::FinishDisconnect(Connection& connection, int status, Step& step) {
  if (Id* id = IdOf(connection); id != nullptr && id->state == IdState::kConnecting) {
    id->state = IdState::kDisconnected;
    Emit(*id, EventType::kDisconnected, status, step);
  }
  ++counters.disconnected;
  EnterTimewait(connection, step);
}

void Core::StartDisconnect(Connection& connection, Step& step) {
  wire::CmDreq dreq;
  dreq.local_comm_id = connection.local_comm_id;
  dreq.remote_comm_id = connection.remote_comm_id;
  dreq.remote_qpn = connection.remote_qpn;
  connection.state = ConnectionState::kDreqSent;
  connection.disconnect_transaction_id = random.Next();
  SendUntilAnswered(connection, connection.disconnect_transaction_id, dreq, 0, SlowInterval(),
                    config.max_cm_retries + 1, step);
  if (connection.id == CmHandle{}) connection.schedule.give_up = step.now + config.orphan_give_up;
  ListOrphan(connection);
}

void Core::AskForTime(Connection& connection, wire::CmAnswered answered, Step& step) {
  connection.asked_for_time = true;
  wire::CmMra mra;
  mra.local_comm_id = connection.local_comm_id;
  mra.remote_comm_id = connection.remote_comm_id;
  mra.answered = answered;
  mra.service_timeout = config.mra_service_timeout;
  Send(connection, connection.transaction_id, mra, 0, step);
}

wire::CmRej Core::MakeReject(const Connection& connection, wire::CmAnswered answered,
                             wire::RejectReason reason) const {
  wire::CmRej rej;
  // A peer that has not received our communication ID yet would not recognise it.
  rej.local_comm_id = answered == wire::CmAnswered::kReq ? 0 : connection.local_comm_id;
  rej.remote_comm_id = connection.remote_comm_id;
  rej.answered = answered;
  rej.reason = reason;
  if (reason == wire::RejectReason::kTimeout) {
    rej.info_length = 8;
    const uint64_t guid = CaGuidFor(connection.path.destination);
    for (int i = 0; i < 8; ++i) rej.info[i] = static_cast<uint8_t>(guid >> (56 - 8 * i));
  }
  return rej;
}

void Core::SendReject(Connection& connection, wire::CmAnswered answered, wire::RejectReason reason,
                      Step& step) {
  connection.reason = static_cast<uint16_t>(reason);
  ++counters.rejected;
  Send(connection, connection.transaction_id, MakeReject(connection, answered, reason), 0, step);
}

Duration Core::SlowInterval() const {
  return CodeToDuration(config.packet_lifetime) * 2 + CodeToDuration(config.response_timeout);
}

IdInfo InfoOf(const Id& id) {
  IdInfo info;
  info.device = id.device;
  info.port_space = id.port_space;
  info.qp_type = id.qp_type;
  info.local = id.local;
  info.remote = id.remote;
  info.source_gid = id.source_gid;
  info.destination_gid = id.destination_gid;
  info.source_gid_index = id.source_gid_index;
  info.path_mtu = id.path_mtu;
  info.traffic_class = id.traffic_class;
  info.hop_limit = id.hop_limit;
  info.flow_label = id.flow_label;
  return info;
}

}  // namespace rocegw::cm
