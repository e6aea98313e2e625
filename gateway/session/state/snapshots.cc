// SPDX-License-Identifier: Apache-2.0
// Snapshots for the state service: rows from the control thread's data, and for QPs from the
// workers' answers.
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "gateway/base/timing/silence.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/session_server.h"

namespace rocegw::session {
namespace {

Totals TotalsOf(const tenant::QuotaNode& usage) {
  Totals totals;
  totals.sessions = usage.used(Resource::kSessions);
  totals.qps = usage.used(Resource::kQps);
  totals.cqs = usage.used(Resource::kCqs);
  totals.mrs = usage.used(Resource::kMrs);
  totals.pds = usage.used(Resource::kPds);
  totals.cm_ids = usage.used(Resource::kCmIds);
  totals.registered_bytes = usage.used(Resource::kRegisteredBytes);
  totals.segment_bytes = usage.used(Resource::kSegmentBytes);
  return totals;
}

// Returns a UUID as nvidia-smi prints it.
std::string TextOf(const device_memory::CuUuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02x", uuid.bytes[i]);
    text += byte;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

MrRow RowOf(const ClientSession& session, uint32_t handle, const Mr& mr) {
  MrRow row;
  row.session = session.id().value;
  row.handle = handle;
  row.rkey = mr.key.value;
  row.address = mr.address;
  row.length = mr.length;
  row.access = mr.access;
  const RemappedRegion* const region = session.objects().regions.Find(mr.region);
  row.way = WayOf(session, region);
  if (row.way == ROCEGW_MEMORY_DEVICE) {
    row.reason = device_memory::NameOf(region->device->engine().driver().kind) +
                 std::string(" device ") + TextOf(region->device->engine().device());
  } else if (row.way == ROCEGW_MEMORY_DMA_BUF) {
    row.reason = "exported by " + region->memory->exporter();
  } else if (row.way != ROCEGW_MEMORY_REMAPPED) {
    row.reason = rocegw_kept_text(mr.kept);
  }
  if (row.way == ROCEGW_MEMORY_DESCRIPTOR) {
    row.reason += "; its user is not the daemon's, or its process is not visible here";
  }
  if (mr.windows != nullptr) row.windows = mr.windows->count();
  return row;
}

// A window's row shows the part of the region that it opens. `regions`: handles by key.
MrRow RowOf(const ClientSession& session, uint32_t handle, const Mw& mw,
            const std::unordered_map<uint32_t, uint32_t>& regions) {
  MrRow row;
  row.session = session.id().value;
  row.handle = handle;
  row.rkey = mw.key.value;
  row.window = mw.window->type() == verbs::MwType::kType1 ? 1 : 2;
  const auto binding = mw.window->binding();
  if (!binding.has_value()) return row;
  row.rkey = binding->key.value;
  row.address = binding->address;
  row.length = binding->length;
  row.access = binding->access;
  if (row.window == 2) row.window_qpn = binding->qpn.value;
  // The region was, or is being, destroyed when the window was read.
  const auto region = regions.find(binding->region.value);
  if (region != regions.end()) row.bound_to = region->second;
  return row;
}

void AddMrs(const ClientSession& session, std::vector<MrRow>& rows) {
  const Objects& objects = session.objects();
  std::unordered_map<uint32_t, uint32_t> regions;
  objects.mrs.ForEach([&](uint32_t handle, const Mr& mr) {
    rows.push_back(RowOf(session, handle, mr));
    if (objects.mws.size() != 0) regions[mr.key.value] = handle;
  });
  objects.mws.ForEach(
      [&](uint32_t handle, const Mw& mw) { rows.push_back(RowOf(session, handle, mw, regions)); });
}

std::vector<std::string> NamesOf(uint32_t options) {
  std::vector<std::string> names;
  for (uint32_t bit = wire::kOptionChannel; bit != 0; bit <<= 1) {
    if ((options & bit) != 0) names.push_back(wire::OptionText(bit));
  }
  return names;
}

ConnectionRow RowOf(const cm::ConnectionRow& connection) {
  ConnectionRow row;
  row.session = connection.id == cm::CmHandle{} ? 0 : connection.owner.value;
  row.active = connection.active;
  row.state = connection.state;
  row.local_comm_id = connection.local_comm_id;
  row.remote_comm_id = connection.remote_comm_id;
  row.local_qpn = connection.local_qpn.value;
  row.remote_qpn = connection.remote_qpn.value;
  row.local_gid = connection.local_gid;
  row.remote_gid = connection.remote_gid;
  row.path_mtu = connection.path_mtu;
  row.sent_vendor = connection.ece.sent.vendor_id;
  row.sent_options = connection.ece.sent.options;
  row.received_vendor = connection.ece.received.vendor_id;
  row.received_options = connection.ece.received.options;
  row.agreed = NamesOf(connection.ece.agreed);
  row.reason = connection.datagram ? "address exchange of datagrams" : connection.ece.verdict;
  if (connection.reason != 0) row.rejected = cm::RejectReasonText(connection.reason);
  return row;
}

const char* StateText(channel::ChannelState state) {
  switch (state) {
    case channel::ChannelState::kOpening:
      return "opening";
    case channel::ChannelState::kOpen:
      return "open";
    case channel::ChannelState::kClosing:
      return "closing";
    case channel::ChannelState::kGone:
      break;
  }
  return "gone";
}

ChannelRow RowOf(const channel::ChannelSnapshot& channel, WorkerIndex worker) {
  ChannelRow row;
  row.number = channel.number.value;
  row.peer_number = channel.peer_number == kInvalidQpn ? 0 : channel.peer_number.value;
  row.worker = worker;
  row.peer_worker = channel.key.peer_worker;
  row.local_gid = channel.key.source;
  row.remote_gid = channel.key.peer;
  row.traffic_class = channel.key.traffic_class;
  row.path = channel.key.path;
  row.state = StateText(channel.state);
  if (channel.state != channel::ChannelState::kOpening)
    row.agreed = NamesOf(wire::AgreedOptions(channel.features));
  row.congestion = flow::AlgorithmOf(channel.congestion).name;
  row.window_bytes = channel.window;
  row.in_flight_bytes = channel.in_flight;
  row.rtt_ns = static_cast<uint64_t>(channel.rtt.ns);
  row.min_rtt_ns = static_cast<uint64_t>(channel.min_rtt.ns);
  row.users = channel.users;
  row.waiting = channel.waiting;
  row.lost = channel.lost;
  row.resent = channel.resent;
  row.spurious = channel.spurious;
  row.path_changes = channel.path_changes;
  row.protection = !channel.sealed          ? "none"
                   : channel.seal.encrypted ? "encrypted"
                                            : "authenticated";
  row.key_id = channel.seal.tx_key_id;
  row.peer_key_id = channel.seal.rx_key_id;
  return row;
}

// Returns why the channel that was chosen for a queue pair is not used.
const char* DeclinedText(wire::ChannelReason reason) {
  switch (reason) {
    case wire::ChannelReason::kNotAllowed:
      return "no more channels for its pool: a limit of channels is reached";
    case wire::ChannelReason::kNoResources:
      return "no more channels are possible, here or at the peer gateway";
    case wire::ChannelReason::kUnsupported:
      return "the peer gateway has nothing in common with what we offer";
    case wire::ChannelReason::kUnknownChannel:
    case wire::ChannelReason::kStaleEpoch:
      return "the peer gateway was restarted while this connected";
    case wire::ChannelReason::kPathFailed:
      return "the peer gateway did not answer when a channel was opened";
    default:
      return "the peer gateway declined a channel";
  }
}

const char* StateText(transport::EndpointState state) {
  switch (state) {
    case transport::EndpointState::kReset:
      return "reset";
    case transport::EndpointState::kReady:
      return "ready";
    case transport::EndpointState::kSuspended:
      return "suspended";
    case transport::EndpointState::kDraining:
      return "draining";
    case transport::EndpointState::kException:
      return "exception";
    case transport::EndpointState::kError:
      break;
  }
  return "error";
}

// Endpoints have these two modes only.
const char* ModeText(verbs::ServiceMode mode) {
  return mode == verbs::ServiceMode::kByInitiator ? "by initiator" : "unordered";
}

QpRow RowOf(const worker::QpSnapshot& qp) {
  QpRow row;
  row.session = qp.session.value;
  row.qpn = qp.qpn.value;
  row.type = static_cast<uint8_t>(qp.type);
  row.state = static_cast<uint8_t>(qp.attributes.state);
  const bool connected = (verbs::IsReliable(qp.type) || qp.type == verbs::QpType::kUc) &&
                         qp.attributes.state >= verbs::QpState::kRtr;
  if (connected) {
    row.remote_qpn = qp.attributes.dest_qpn.value;
    row.local_gid = qp.attributes.path.source;
    row.remote_gid = qp.attributes.path.destination;
    row.path_mtu = verbs::MtuBytes(qp.attributes.path_mtu);
  }
  row.send_psn = qp.next_send_psn.value;
  row.unacked_psn = qp.oldest_unacked_psn.value;
  row.expected_psn = qp.expected_psn.value;
  row.sends_posted = qp.sends_completed + qp.send_outstanding;
  row.sends_completed = qp.sends_completed;
  row.receives_completed = qp.receives_completed;
  row.outstanding = qp.send_outstanding;
  return row;
}

PoolRow RowOf(const tenant::Pool& pool) {
  PoolRow row;
  row.id = pool.id();
  row.name = pool.name();
  row.uid = pool.settings().uid;
  row.leaving = pool.leaving();
  row.trusted = pool.settings().trusted;
  row.sent_bytes = pool.share().sent_bytes.load(std::memory_order_relaxed);
  row.sent_packets = pool.share().sent_packets.load(std::memory_order_relaxed);
  const tenant::Quota& quota = pool.settings().quota;
  for (size_t i = 0; i < tenant::kLimits; ++i) {
    LimitRow limit;
    limit.limit = tenant::LimitName(i);
    limit.refused = pool.refused(i);
    if (i < tenant::kResources) {
      limit.used = pool.used(static_cast<Resource>(i));
      limit.committed = quota.committed.held[i];
      limit.peak = quota.peak.held[i];
    } else {
      limit.committed = quota.committed.rates[i - tenant::kResources];
      limit.peak = quota.peak.rates[i - tenant::kResources];
    }
    row.limits.push_back(std::move(limit));
  }
  // These are no limits of the pool, but other reasons for refusals.
  const auto add_rule = [&row](std::string_view rule, uint64_t refused) {
    LimitRow limit;
    limit.limit = rule;
    limit.refused = refused;
    row.limits.push_back(std::move(limit));
  };
  add_rule("allowed_peers", pool.peers_refused());
  add_rule("identity", pool.identities_refused());
  add_rule("program_bounds", pool.bounds_refused());
  row.set_up = pool.set_up();
  row.operations = pool.share().operations.Read();
  row.attaches = pool.attaches();
  return row;
}

DiscoveryRow RowOf(const cm::Discovery& discovery) {
  const cm::DiscoveryCounters& counters = discovery.counters();
  DiscoveryRow row;
  row.asked = counters.asked;
  row.answered_as_gateway = counters.gateways;
  row.refused = counters.refused;
  row.silent = counters.silent;
  row.answers = counters.answered;
  row.not_answered = counters.not_answered;
  row.not_asked = counters.table_full;
  row.unauthenticated = counters.unauthenticated;
  for (const cm::PeerRow& peer : discovery.Rows()) {
    row.gateways += peer.kind == cm::PeerKind::kGateway;
    row.rdma_devices += peer.kind == cm::PeerKind::kRnic;
  }
  for (const wire::Gid& member : discovery.members()) {
    const cm::PeerKind kind =
        discovery.enabled() ? discovery.KindOf(member) : cm::PeerKind::kUnknown;
    row.members_answering += kind == cm::PeerKind::kGateway;
    row.members_mute += kind == cm::PeerKind::kRnic;
    row.members_not_asked += kind == cm::PeerKind::kUnknown || kind == cm::PeerKind::kAsking;
  }
  return row;
}

void FillHolders(const AttachServer& attach, DrainRow& drain) {
  constexpr size_t kMost = 5;
  attach.ForEach([&](const ClientSession& session) {
    ++drain.sessions;
    const size_t qps = session.objects().qps.size();
    drain.qps += qps;
    if (qps == 0 || drain.holders.size() == kMost) return;
    drain.holders.push_back("session " + std::to_string(session.id().value) + " (" +
                            session.peer().comm + ", pid " + std::to_string(session.peer().pid) +
                            "): " + std::to_string(qps) + " queue pairs");
  });
  drain.empty = drain.qps == 0;
}

// A worker that is silent for so long hangs.
constexpr Duration kHung = Seconds(5);

}  // namespace

DrainRow SessionServer::Holders() const {
  DrainRow holders;
  FillHolders(attach_, holders);
  return holders;
}

void SessionServer::AssignToOpener(worker::QpSnapshot& qp) const {
  const XrcTarget* const target = services_.xrc.FindTarget(qp.session, qp.qpn);
  if (target == nullptr) return;
  qp.session = target->openers.front().session;
  qp.qp_handle = target->openers.front().handle;
}

void SessionServer::AddWhatIsKnown(const worker::QpSnapshot& from, QpRow& row) {
  const ClientSession* const session = attach_.Find(from.session);
  const Qp* const qp = session == nullptr ? nullptr : session->objects().qps.Find(from.qp_handle);
  if (qp == nullptr) return;
  if (qp->type == verbs::QpType::kEndpoint) {
    row.endpoint = EndpointRow{.state = StateText(from.endpoint.state),
                               .mode = ModeText(qp->service_mode),
                               .suspends_on_failure = qp->suspends_on_failure,
                               .requests = from.endpoint.requests,
                               .messages = from.endpoint.messages,
                               .failures = from.endpoint.failures};
  }
  if (row.remote_qpn == 0) return;
  row.transport = from.on_channel ? "channel" : "native";
  row.transport_reason =
      from.declined == wire::ChannelReason::kNone ? qp->data_path : DeclinedText(from.declined);
  row.channel = from.on_channel ? from.channel.value : 0;
  for (const Qpn channel : from.beside) row.beside.push_back(channel.value);
}

void SessionServer::AddSrqRow(const worker::SrqSnapshot& from, StateSnapshot& snapshot) {
  const ClientSession* const session = attach_.Find(from.session);
  const Srq* const srq =
      session == nullptr ? nullptr : session->objects().srqs.Find(from.srq_handle);
  if (srq == nullptr) return;
  SrqRow& row = snapshot.srqs.emplace_back();
  row.session = from.session.value;
  row.handle = from.srq_handle;
  row.worker = srq->worker;
  row.size = srq->capacity;
  row.max_sge = srq->max_sge;
  row.limit = from.limit;
  row.held = from.waiting;
  row.qps = srq->users;
  row.taken = from.taken;
  row.limit_events = from.limit_events;
}

Totals SessionServer::totals() const { return TotalsOf(services_.pools.gateway()); }

void SessionServer::TakeSnapshot(const StateQuery& query, std::function<void(StateSnapshot)> done) {
  auto snapshot = std::make_shared<StateSnapshot>();
  snapshot->totals = totals();
  snapshot->qps_by_worker.resize(services_.workers.worker_count());
  const TimePoint now = ControlLoop::Now();
  for (size_t i = 0; i < services_.workers.worker_count(); ++i)
    snapshot->silent_by_worker.push_back(
        services_.workers.silent(static_cast<WorkerIndex>(i), now));
  for (size_t i = 0; i < metrics::kDropReasonCount; ++i) {
    snapshot->control_drops.push_back(cm_.drops(static_cast<metrics::DropReason>(i)));
  }
  attach_.ForEach([&](const ClientSession& session) {
    session.objects().qps.ForEach(
        [&](uint32_t, const Qp& qp) { ++snapshot->qps_by_worker[qp.worker]; });
    if (query.sessions) snapshot->sessions.push_back(session.Row());
    if (query.mrs) AddMrs(session, snapshot->mrs);
  });
  if (query.sessions)
    attach_.ForEachBlocked([&](SessionRow row) { snapshot->sessions.push_back(std::move(row)); });
  if (query.connections) {
    for (const cm::ConnectionRow& connection : cm_.engine().Connections())
      snapshot->connections.push_back(RowOf(connection));
  }
  if (query.pools) {
    services_.pools.ForEachPool([&](const tenant::Pool& pool) {
      snapshot->pools.push_back(RowOf(pool));
      if (const auto reserve = reserves_.Of(pool)) {
        snapshot->pools.back().ready = {reserve->wanted(), reserve->ready(), reserve->bytes(),
                                        reserve->hits(), reserve->misses()};
      }
      if (!pool.leaving()) snapshot->pools.back().sockets = slots_.Paths(pool.name());
    });
  }
  if (query.events) snapshot->events = services_.events.Rows();
  snapshot->discovery = RowOf(cm_.engine().discovery());
  const bool draining = drain_.active();
  snapshot->drain.active = draining;
  snapshot->drain.start_ns = drain_.start_ns();
  if (draining) FillHolders(attach_, snapshot->drain);
  if (std::string hung = SilentWorker(snapshot->silent_by_worker, kHung); !hung.empty()) {
    if (query.OfWorkers()) snapshot->unanswered = std::move(hung);
    return done(std::move(*snapshot));
  }
  // Channels have a list of their own; queue pairs also give what a drain waits for.
  if (query.channels) return AddChannels(snapshot, std::move(done));
  if (query.peers) return AddPeers(snapshot, std::move(done));
  if (query.srqs) return AddSrqs(snapshot, std::move(done));
  if (query.qps || (query.outstanding && draining)) return AddQps(snapshot, query, std::move(done));
  done(std::move(*snapshot));
}

void SessionServer::AddQps(const std::shared_ptr<StateSnapshot>& snapshot, const StateQuery& query,
                           std::function<void(StateSnapshot)> done) {
  services_.workers.Broadcast(
      [](WorkerIndex) { return worker::SnapshotQps{}; },
      [this, snapshot, query, done = std::move(done)](const worker::ControlReply& reply) {
        for (const worker::QpSnapshot& qp : reply.qps)
          snapshot->drain.outstanding += qp.send_outstanding;
        if (!query.qps) return done(std::move(*snapshot));
        for (const worker::QpSnapshot& known : reply.qps) {
          if (query.qpn != 0 && known.qpn.value != query.qpn) continue;
          worker::QpSnapshot qp = known;
          AssignToOpener(qp);
          QpRow row = RowOf(qp);
          row.worker = services_.steering.WorkerOf(qp.qpn);
          AddWhatIsKnown(qp, row);
          snapshot->qps.push_back(std::move(row));
        }
        done(std::move(*snapshot));
      });
}

void SessionServer::AddChannels(const std::shared_ptr<StateSnapshot>& snapshot,
                                std::function<void(StateSnapshot)> done) {
  services_.workers.Broadcast(
      [](WorkerIndex) { return worker::SnapshotChannels{}; },
      [this, snapshot, done = std::move(done)](const worker::ControlReply& reply) {
        for (const channel::ChannelSnapshot& channel : reply.channels) {
          snapshot->channels.push_back(RowOf(channel, services_.steering.WorkerOf(channel.number)));
        }
        done(std::move(*snapshot));
      });
}

void SessionServer::AddPeers(const std::shared_ptr<StateSnapshot>& snapshot,
                             std::function<void(StateSnapshot)> done) {
  services_.workers.Broadcast(
      [](WorkerIndex) { return worker::SnapshotPeers{}; },
      [this, snapshot, done = std::move(done)](const worker::ControlReply& reply) {
        for (const channel::PeerTraffic& traffic : reply.peers) {
          PeerRow& peer = snapshot->peers[fleet_peers_.LabelOf(traffic.peer)];
          peer.channels += traffic.channels;
          peer.in_flight_bytes += traffic.in_flight_bytes;
          peer.arrived_bytes += traffic.arrived_bytes;
          peer.resent_packets += traffic.resent_packets;
          peer.rtts = peer.rtts + traffic.rtts;
          peer.channels_rtt += traffic.channels_rtt;
        }
        done(std::move(*snapshot));
      });
}

void SessionServer::AddSrqs(const std::shared_ptr<StateSnapshot>& snapshot,
                            std::function<void(StateSnapshot)> done) {
  services_.workers.Broadcast(
      [](WorkerIndex) { return worker::SnapshotSrqs{}; },
      [this, snapshot, done = std::move(done)](const worker::ControlReply& reply) {
        for (const worker::SrqSnapshot& srq : reply.srqs) AddSrqRow(srq, *snapshot);
        done(std::move(*snapshot));
      });
}

}  // namespace rocegw::session
