// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/cm/cm_binding.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_records.h"
#include "gateway/session/commands/qp_attributes.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/cm_requests.h"
#include "gateway/session/reserve/refill_timer.h"
#include "gateway/session/services.h"
#include "gateway/wire/link_local.h"

namespace rocegw::session {
namespace {

// Initial capacity for each kind of action; more grow the lists.
constexpr size_t kActionsAtOnce = 16;

// Returns the event of a failed connection step; nothing for other requests.
std::optional<cm::EventType> FailureOf(uint32_t request) {
  switch (request) {
    case ROCEGW_MSG_CM_RESOLVE_ADDR:
      return cm::EventType::kAddrError;
    case ROCEGW_MSG_CM_RESOLVE_ROUTE:
      return cm::EventType::kRouteError;
    case ROCEGW_MSG_CM_CONNECT:
    case ROCEGW_MSG_CM_ACCEPT:
    case ROCEGW_MSG_CM_ESTABLISH:
      return cm::EventType::kConnectError;
    default:
      return std::nullopt;
  }
}

}  // namespace

cm::CmConfig CmBinding::ConfigFor(const Services& services) {
  cm::CmConfig config;
  config.max_depth = static_cast<uint8_t>(services.options.device.max_rd_atomic);
  // Pools' limits are enforced here, with an answer to the peer. The engine's limit is a fixed
  // bound, so that a later configuration may raise the pools' limits.
  constexpr size_t kMost = size_t{1} << 20;
  config.max_ids = std::max<size_t>(services.options.limits.cm_ids, kMost) + 1024;
  config.max_ids_per_owner = config.max_ids;
  config.discovery.enabled = services.options.gateways.discovery;
  config.discovery.vendor_id = services.options.gateways.vendor_id;
  return config;
}

CmBinding::CmBinding(Services& services, RefillTimer& refill, FindSession find_session,
                     SourceLookup lookup)
    : services_(services),
      refill_(refill),
      find_session_(std::move(find_session)),
      sources_(std::move(lookup)),
      random_(services.random),
      engine_(ConfigFor(services), random_) {
  actions_.Reserve(kActionsAtOnce);
  carried_.Reserve(kActionsAtOnce);
  engine_.SetAddressOwner([this](SessionId owner) -> uint64_t {
    if (!services_.devices.addresses_are_owned()) return 0;
    const ClientSession* const session = find_session_(owner);
    return session == nullptr || session->pool().settings().addresses.empty()
               ? 0
               : session->pool().id();
  });
  engine_.SetPoolOf([this](SessionId owner) -> uint64_t {
    const ClientSession* const session = find_session_(owner);
    return session == nullptr ? 0 : session->pool().id();
  });
  DevicesChanged();
}

CmBinding::~CmBinding() { services_.loop.Cancel(timer_); }

void CmBinding::DevicesChanged() {
  std::vector<cm::LocalAddress> addresses;
  for (size_t d = 0; d < services_.devices.size(); ++d) {
    const Device& device = services_.devices[d];
    const size_t count = std::min(device.gids.size(), verbs::GidTable::kSize);
    for (size_t i = 0; i < count; ++i) {
      if (device.gids[i].IsZero()) continue;
      // As kernels do: for other addresses the program's sockaddr_in6 comes back unchanged.
      const uint32_t scope = wire::IsLinkLocal(device.gids[i]) ? device.interface_index : 0;
      addresses.push_back({device.gids[i], static_cast<int32_t>(d), static_cast<uint8_t>(i),
                           device.interface_mtu, scope, services_.devices.OwnerOf(device.gids[i])});
    }
  }
  engine_.SetAddresses(addresses);
  sources_.Forget();
  if (reachability_) reachability_->Forget();
}

void CmBinding::WaitForNeighbours() {
  reachability_ = std::make_unique<Reachability>(services_.loop);
}

int CmBinding::Run(ClientSession& session, cm::CmHandle id, const Body& body) {
  if (reachability_ && std::holds_alternative<cm::DestroyId>(body))
    reachability_->Cancel(session.id(), id);
  const int error = engine_.OnCommand({session.id(), id, body}, ControlLoop::Now(), actions_);
  CarryOut();
  return error;
}

void CmBinding::ResolveAddress(ClientSession& session, cm::CmHandle id, const cm::Endpoint& source,
                               const cm::Endpoint& destination, Duration timeout) {
  cm::AddressResolved resolved;
  const std::vector<Device>& devices = services_.devices.SeenBy(session.pool());
  const auto lookup = [&](const wire::Gid& to, uint32_t interface_index) -> StatusOr<wire::Gid> {
    auto found = sources_.Find(to, interface_index, ControlLoop::Now());
    if (!found.ok() || services_.devices.MaySee(session.pool(), *found)) return found;
    // The kernel prefers an address of another pool; an address of ours on the same device serves
    // as well.
    for (size_t d = 0; d < devices.size(); ++d) {
      const auto& all = services_.devices[d].gids;
      if (std::find(all.begin(), all.end(), *found) == all.end()) continue;
      for (const wire::Gid& gid : devices[d].gids) {
        if (!gid.IsZero() && gid.IsV4() == to.IsV4()) return gid;
      }
    }
    return Status(EADDRNOTAVAIL, "the pool has no address that leads there");
  };
  auto route = ResolveRoute(source, destination, devices, std::ref(lookup));
  if (route.ok()) {
    resolved.source = route->source;
    resolved.destination = route->destination;
    resolved.may_ask = session.pool().MayTalkTo(route->destination);
  } else {
    resolved.error = route.status().error();
  }
  if (!route.ok() || !MayWait(*route)) {
    Run(session, id, resolved);
    return;
  }
  const Device& device = services_.devices[static_cast<size_t>(DeviceOf(route->source))];
  const bool known = reachability_->Check(
      session.id(), id, {route->source, route->destination, device.interface_index, timeout},
      [this, owner = session.id(), id, destination, resolved](bool reachable) mutable {
        ClientSession* const waiting = find_session_(owner);
        cm::IdInfo info;
        // The program may have asked for another destination since.
        if (waiting == nullptr || waiting->ending() || !Query(owner, id, info) ||
            info.remote.address != destination.address) {
          return;
        }
        if (!reachable) resolved.error = ETIMEDOUT;
        Run(*waiting, id, resolved);
      });
  if (known) Run(session, id, resolved);
}

// Returns true if the route has a next hop to wait for. Own addresses and groups have none, and
// ports without a kernel interface (interface_index 0) resolve theirs without the kernel.
bool CmBinding::MayWait(const Route& route) const {
  const int device = DeviceOf(route.source);
  return reachability_ && device >= 0 &&
         services_.devices[static_cast<size_t>(device)].interface_index != 0 &&
         DeviceOf(route.destination) < 0 && !route.destination.IsMulticast();
}

int CmBinding::DeviceOf(const wire::Gid& gid) const {
  for (size_t d = 0; d < services_.devices.size(); ++d) {
    const auto& gids = services_.devices[d].gids;
    if (std::find(gids.begin(), gids.end(), gid) != gids.end()) return static_cast<int>(d);
  }
  return -1;
}

int CmBinding::LocalAddress(ClientSession& session, const cm::Endpoint& address) const {
  if (address.IsWildcard() || address.IsLoopback()) return 0;
  return services_.devices.MaySee(session.pool(), address.address) ? 0 : EADDRNOTAVAIL;
}

bool CmBinding::Query(SessionId owner, cm::CmHandle id, cm::IdInfo& out) const {
  return engine_.QueryId(owner, id, out) == 0;
}

CmId* CmBinding::Named(ClientSession& session, uint32_t handle) {
  CmId* const id = session.objects().cm_ids.Find(handle);
  if (id != nullptr && id->listener != 0) {
    UnlinkRequest(session.objects().cm_ids, handle);
    Run(session, id->engine, cm::RequestFetched{});
  }
  return id;
}

int CmBinding::InitQpAttributes(const ClientSession& session, cm::CmHandle id, cm::QpState state,
                                cm::QpAttributes& out) const {
  const int error = engine_.InitQpAttributes(session.id(), id, state, out);
  // As Linux does if a device has FLUSH: for queue pairs that allow remote reads.
  if (services_.rules.HasPlacement(session.pool()) && (out.access & verbs::kAccessRemoteRead) != 0)
    out.access |= verbs::kAccessFlushGlobal;
  return error;
}

void CmBinding::OnUnanswered(ClientSession& session, uint32_t request, uint32_t handle, int error) {
  const CmId* const id = session.objects().cm_ids.Find(handle);
  const auto type = FailureOf(request);
  if (id == nullptr || !type) return;
  // The peer waits for an answer, so it gets one.
  if (request == ROCEGW_MSG_CM_ACCEPT || request == ROCEGW_MSG_CM_ESTABLISH)
    Run(session, id->engine, cm::Reject{});
  cm::CmEvent event;
  event.type = *type;
  event.status = -error;
  event.id = id->engine;
  event.owner = session.id();
  event.name = handle;
  (void)Query(session.id(), id->engine, event.info);
  Deliver(event);
}

void CmBinding::DropSession(ClientSession& session) {
  if (reachability_) reachability_->Cancel(session.id());
  engine_.DropOwner(session.id(), ControlLoop::Now(), actions_);
  CarryOut();
}

void CmBinding::OnCommEstablished(ClientSession& session, Qpn qpn) {
  const uint32_t* const found = session.objects().cm_id_by_qpn.Find(qpn.value);
  if (found == nullptr) return;
  const CmId* const id = session.objects().cm_ids.Find(*found);
  Run(session, id->engine, cm::CommEstablished{});
}

void CmBinding::OfferChannels(const std::vector<Qpn>& acceptors) {
  cm::GatewaySettings settings;
  settings.workers = static_cast<uint8_t>(services_.workers.worker_count());
  if (!acceptors.empty()) {
    const PeerGateways& own = services_.options.gateways;
    settings.features = own.features | wire::kOptionChannel;
    settings.window = own.window;
    std::copy(acceptors.begin(), acceptors.end(), settings.acceptors.begin());
  }
  engine_.SetGateway(settings);
}

cm::DataPath CmBinding::ChooseDataPath(const wire::Path& path, Qpn destination, uint32_t allowed) {
  const cm::DataPath chosen = engine_.ChooseDataPath(path.source, path.destination, destination,
                                                     allowed, ControlLoop::Now(), actions_);
  CarryOut();
  return chosen;
}

void CmBinding::WhenSettled(const wire::Gid& peer, std::function<void()> then) {
  waiting_.emplace(peer, std::move(then));
}

void CmBinding::OnMad(const worker::MadReceived& mad) {
  const metrics::DropReason dropped =
      engine_.OnDatagram(mad.mad, mad.meta, mad.source_qpn, ControlLoop::Now(), actions_);
  ++drops_[static_cast<size_t>(dropped)];
  CarryOut();
}

// Reports an unauthenticated peer once per peer while its discovery result is valid.
void CmBinding::TellIfUnauthenticated(const wire::Gid& peer) {
  if (!engine_.discovery().IsUnauthenticated(peer)) return;
  services_.reports.Tell(
      "PEER_UNAUTHENTICATED", "", "peer",
      "gateway " + wire::AddressText(peer) +
          " has no key of the fleet: what it says about channels is not authenticated");
}

// The program itself is told after the protocol's time only, about a minute.
void CmBinding::TellSilent(const cm::SilentPeer& silent) {
  const ClientSession* const session = find_session_(silent.owner);
  if (session == nullptr || session->ending()) return;
  const std::string peer = wire::AddressText(silent.peer);
  services_.reports.Tell(
      "PEER_SILENT", session->pool().name(), peer,
      session->pool().name() + ": " + peer + " does not answer the connection requests of " +
          session->peer().comm +
          ": neither gateway nor RDMA device is there, or it drops them; pods of "
          "Kubernetes are reached by the address of their node (status.hostIP)");
}

void CmBinding::CarryOut() {
  // Delivery may run commands, which come back here: the outermost call handles all actions in
  // order.
  if (carrying_out_) return;
  carrying_out_ = true;
  while (true) {
    carried_.Clear();
    std::swap(carried_, actions_);
    const cm::CmActions& now = carried_;
    for (const cm::QuarantineQpn& rest : now.quarantined) {
      services_.qpns.RestUntil(rest.qpn, rest.until, ControlLoop::Now());
    }
    for (const cm::Acquaintance& one : now.acquaintances)
      services_.workers.TellAll(worker::KnowPeer{one.peer, one.known});
    for (const cm::SendMad& mad : now.mads) SendMad(mad);
    for (const cm::SilentPeer& silent : now.silent) TellSilent(silent);
    for (const cm::CmEvent& event : now.events) Deliver(event);
    for (const wire::Gid& peer : now.settled) {
      TellIfUnauthenticated(peer);
      // Functions that are added meanwhile wait for another result.
      std::vector<std::function<void()>> due;
      const auto [first, last] = waiting_.equal_range(peer);
      for (auto at = first; at != last; ++at) due.push_back(std::move(at->second));
      waiting_.erase(first, last);
      for (const auto& then : due) then();
    }
    if (!actions_.mads.empty() || !actions_.events.empty() || !actions_.quarantined.empty() ||
        !actions_.settled.empty() || !actions_.acquaintances.empty() || !actions_.silent.empty()) {
      continue;
    }
    if (!later_.empty()) {
      const cm::CmCommand command = later_.front();
      later_.pop_front();
      (void)engine_.OnCommand(command, ControlLoop::Now(), actions_);
    } else if (!looped_.empty()) {
      const cm::SendMad mad = looped_.front();
      looped_.pop_front();
      wire::RxMeta meta;
      meta.source = mad.path.source;
      meta.destination = mad.path.destination;
      meta.source_port = mad.path.source_port;
      meta.traffic_class = mad.path.traffic_class;
      const metrics::DropReason dropped =
          engine_.OnDatagram(mad.bytes, meta, kGsiQpn, ControlLoop::Now(), actions_);
      ++drops_[static_cast<size_t>(dropped)];
    } else {
      break;
    }
  }
  carrying_out_ = false;
  if (engine_.wants_refill()) refill_.Later();
  ArmTimer();
}

void CmBinding::SendMad(const cm::SendMad& mad) {
  if (mad.destination == kGsiQpn && DeviceOf(mad.path.destination) >= 0) {
    looped_.push_back(mad);
    return;
  }
  const int device = DeviceOf(mad.path.source);
  // The address was removed meanwhile; the engine's own deadline ends the attempt.
  if (device < 0) return;
  worker::SendMad message;
  message.path = mad.path;
  // The same port for all datagrams to that host: a receiver with several queues then sees the end
  // of one connection before the start of the next.
  message.path.source_port =
      SourcePortFor(mad.path.source, mad.path.destination, mad.destination, 0);
  message.destination = mad.destination;
  message.device = static_cast<uint32_t>(device);
  std::copy(mad.bytes.begin(), mad.bytes.end(), message.mad.begin());
  services_.workers.Tell(0, message);
}

void CmBinding::Deliver(const cm::CmEvent& event) {
  ClientSession* const session = find_session_(event.owner);
  if (session == nullptr || session->ending()) return;
  const bool is_request = event.type == cm::EventType::kConnectRequest;
  // The id may have been destroyed meanwhile.
  const CmId* const id = session->objects().cm_ids.Find(event.name);
  if (id == nullptr || id->engine != (is_request ? event.listener : event.id)) return;
  if (is_request) return DeliverRequest(*session, event.name, event);
  rocegw_cm_event record = RecordOf(event);
  record.cookie = id->cookie;
  record.id = event.name;
  session->objects().cm_channels.Find(id->channel)->events->Send(event.name, BytesOf(record));
}

void CmBinding::DeliverRequest(ClientSession& session, uint32_t listener_handle,
                               const cm::CmEvent& event) {
  const CmId& listener = *session.objects().cm_ids.Find(listener_handle);
  tenant::Pool& pool = session.pool();
  const auto refuse = [&](wire::RejectReason reason) {
    later_.push_back({session.id(), event.id, cm::Reject{reason, {}}});
    later_.push_back({session.id(), event.id, cm::DestroyId{}});
  };
  // The listener has all addresses, but this address belongs to another pool.
  if (!event.info.source_gid.IsZero() && !services_.devices.MaySee(pool, event.info.source_gid))
    return refuse(wire::RejectReason::kInvalidServiceId);
  if (services_.rules.CheckPeer(pool, event.info.destination_gid) != 0)
    return refuse(wire::RejectReason::kInvalidGid);
  if (services_.rules.CheckDrain(pool, "connection request") != 0)
    return refuse(wire::RejectReason::kNoResources);
  const bool granted =
      services_.rules.TakeRequest(pool) == 0 && services_.rules.Take(pool, Resource::kCmIds) == 0;
  if (!granted) return refuse(wire::RejectReason::kNoResources);
  CmChannel& channel = *session.objects().cm_channels.Find(listener.channel);
  auto id = session.NewCmId();
  id->engine = event.id;
  id->channel = listener.channel;
  id->cookie = listener.cookie;
  id->port_space = listener.port_space;
  ++channel.users;
  rocegw_cm_event record = RecordOf(event);
  record.cookie = listener.cookie;
  record.listen_id = listener_handle;
  record.id = session.objects().cm_ids.Add(std::move(id));
  LinkRequest(session.objects().cm_ids, listener_handle, record.id);
  Name(event.id, record.id);
  channel.events->Send(listener_handle, BytesOf(record));
}

void CmBinding::SetResting(bool rests) {
  rests_ = rests;
  if (!rests) {
    ResolveAgain();
    return ArmTimer();
  }
  if (reachability_) reachability_->CancelAll();
  services_.loop.Cancel(std::exchange(timer_, 0));
  timer_at_ = kNever;
}

void CmBinding::ResolveAgain() {
  const TimePoint now = ControlLoop::Now();
  for (const cm::ResolvingId& one : engine_.Resolving()) {
    ClientSession* const session = find_session_(one.owner);
    if (session == nullptr || session->ending()) continue;
    const Duration left = one.deadline - now - Milliseconds(kLookupMs);
    ResolveAddress(*session, one.id, one.local, one.remote, std::max(left, Duration{0}));
  }
}

const char* CmBinding::Unsettled() const {
  return waiting_.empty() ? nullptr : "a connection waits for the discovery of its peer";
}

void CmBinding::HandOver(hand_over::StateStream& state) {
  state.Require(Unsettled() == nullptr && looped_.empty() && later_.empty(),
                "commands of connections are in progress");
  state(next_handle_);
  engine_.HandOver(state, actions_);
}

void CmBinding::ArmTimer() {
  if (rests_) return;
  const TimePoint deadline = engine_.deadline();
  // An early timer looks again: deadlines of single messages come and go all the time.
  if (timer_at_ <= deadline) return;
  services_.loop.Cancel(timer_);
  timer_at_ = deadline;
  timer_ = services_.loop.At(deadline, [this] {
    timer_ = 0;
    timer_at_ = kNever;
    engine_.OnDeadline(ControlLoop::Now(), actions_);
    CarryOut();
  });
}

}  // namespace rocegw::session
