// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/cm_engine.h"

#include <cerrno>

#include "gateway/cm/connection/dispatch.h"
#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/core.h"

namespace rocegw::cm {
namespace {

// Executes one command of an id that exists and belongs to the caller.
struct Executor {
  Core& core;
  Id& id;
  Step& step;

  int operator()(const CreateId&) const { return EEXIST; }
  int operator()(const DestroyId&) const {
    DestroyAnyId(core, id, step);
    return 0;
  }
  int operator()(const SetOption& c) const { return SetIdOption(core, id, c); }
  int operator()(const Bind& c) const { return BindId(core, id, c.address, /*automatic=*/false); }
  int operator()(const ResolveAddress& c) const { return StartResolve(core, id, c, step); }
  int operator()(const AddressResolved& c) const { return FinishResolve(core, id, c, step); }
  int operator()(const ResolveRoute&) const { return ResolveIdRoute(core, id, step); }
  int operator()(const Listen& c) const {
    const int error = ListenOn(core, id, c);
    if (error == 0) OnListening(core, id, step);
    return error;
  }
  int operator()(const Connect& c) const { return StartConnect(core, id, c.param, step); }
  int operator()(const Accept& c) const { return AcceptRequest(core, id, c.param, step); }
  int operator()(const Reject& c) const { return RejectRequest(core, id, c, step); }
  int operator()(const Establish&) const { return ConfirmEstablished(core, id, step); }
  int operator()(const Disconnect&) const { return DisconnectId(core, id, step); }
  int operator()(const CommEstablished&) const { return NoteCommEstablished(core, id, step); }
  int operator()(const QpFailed&) const { return FailQp(core, id, step); }
  int operator()(const RequestFetched&) const {
    core.LeaveBacklog(id);
    return 0;
  }
};

// Sends the requests held for peers that were settled after the first `from` entries.
void SendHeld(Core& core, size_t from, Step& step) {
  for (size_t i = from; i < step.actions.settled.size(); ++i)
    SendHeldRequests(core, step.actions.settled[i], step);
}

// Does what every call ends with. The handlers of the call hold no connection any more.
void Finish(Core& core, Step& step) {
  SendWaitingRequests(core, step);
  core.DropExcessOrphans();
}

const Id* Owned(const Core& core, SessionId owner, CmHandle handle) {
  const Id* id = core.FindId(handle);
  return id != nullptr && id->owner == owner ? id : nullptr;
}

}  // namespace

CmEngine::CmEngine(const CmConfig& config, RandomSource& random)
    : core_(std::make_unique<Core>(config, random)) {}

CmEngine::~CmEngine() = default;

void CmEngine::SetAddresses(std::span<const LocalAddress> addresses) {
  core_->addresses.assign(addresses.begin(), addresses.end());
}

void CmEngine::SetAddressOwner(std::function<uint64_t(SessionId)> owner) {
  core_->ports.address_owner = std::move(owner);
}

void CmEngine::SetPoolOf(std::function<uint64_t(SessionId)> pool_of) {
  core_->ports.pool_of = core_->pool_of = std::move(pool_of);
}

void CmEngine::SetGateway(const GatewaySettings& settings) { core_->discovery.SetOwn(settings); }

DataPath CmEngine::ChooseDataPath(const wire::Gid& source, const wire::Gid& peer, Qpn destination,
                                  uint32_t allowed, TimePoint now, CmActions& actions) {
  const auto native = [](const char* reason) { return DataPath{false, std::nullopt, reason}; };
  Core& core = *core_;
  if ((core.discovery.own().features & wire::kOptionChannel) == 0)
    return native("channels are not enabled here");
  if (core.FindAddress(peer) != nullptr) return native("the peer is on this gateway too");
  if (!core.discovery.enabled()) return native("discovery is not enabled here");
  if ((allowed & wire::kOptionChannel) == 0) return native("the program wants no channel");
  Step step{now, actions};
  switch (core.Ask(source, peer, step)) {
    case PeerKind::kAsking:
      return {true, std::nullopt, "what the peer is, is being found out"};
    case PeerKind::kUnknown:
    case PeerKind::kRnic:
      return {false, std::nullopt, "the peer does not answer as a gateway",
              core.discovery.IsSilent(peer)};
    case PeerKind::kGateway:
      break;
  }
  const auto target = core.discovery.TargetOf(peer, destination);
  if (!target) return native("the peer gateway has no channels");
  const Connection* const connection = core.connections.ByPeer(peer, destination);
  const bool connected = connection != nullptr && connection->state != ConnectionState::kTimewait &&
                         connection->state != ConnectionState::kRejected;
  if (!connected) return {false, target, "the peer gateway has channels"};
  const uint32_t agreed = connection->state == ConnectionState::kReqReceived
                              ? WouldAgree(connection->ece, core.ViewOf(*connection))
                              : connection->ece.agreed;
  if ((agreed & wire::kOptionChannel) == 0) return native("no channel was agreed on by the CM");
  return {false, target, "a channel was agreed on by the CM"};
}

void CmEngine::SetKeys(const FleetKeys& keys) { core_->discovery.SetKeys(keys); }

void CmEngine::SetMember(const wire::Gid& peer, bool member) {
  core_->discovery.SetMember(peer, member);
}

void CmEngine::ForgetPeer(const wire::Gid& peer, CmActions& actions) {
  core_->discovery.Forget(peer, actions);
}

const Discovery& CmEngine::discovery() const { return core_->discovery; }

metrics::DropReason CmEngine::OnDatagram(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                                         Qpn source_qpn, TimePoint now, CmActions& actions) {
  if (wire::IsVendorMad(bytes)) {
    const size_t known = actions.settled.size();
    const DropReason reason = core_->discovery.OnMad(bytes, meta, source_qpn, now, actions);
    Step step{now, actions};
    SendHeld(*core_, known, step);
    return reason;
  }
  wire::CmMad mad;
  if (const DropReason reason = wire::DecodeMad(bytes, mad); reason != DropReason::kNone)
    return reason;
  return OnMad(mad, meta, source_qpn, now, actions);
}

metrics::DropReason CmEngine::OnMad(const wire::CmMad& mad, const wire::RxMeta& meta,
                                    Qpn source_qpn, TimePoint now, CmActions& actions) {
  Step step{now, actions};
  const DropReason reason = Dispatch(*core_, {mad, meta, source_qpn}, step);
  Finish(*core_, step);
  return reason;
}

int CmEngine::OnCommand(const CmCommand& command, TimePoint now, CmActions& actions) {
  if (const auto* create = std::get_if<CreateId>(&command.body); create != nullptr) {
    return CreateNewId(*core_, command.owner, command.id, *create);
  }
  Id* id = core_->FindId(command.id);
  if (id == nullptr || id->owner != command.owner) return EINVAL;
  Step step{now, actions};
  const int error = std::visit(Executor{*core_, *id, step}, command.body);
  Finish(*core_, step);
  return error;
}

void CmEngine::DropOwner(SessionId owner, TimePoint now, CmActions& actions) {
  Step step{now, actions};
  // Destroying a listener also destroys its waiting requests.
  const Core::Holdings* held = core_->owners.Find(owner.value);
  while (held != nullptr && held->first != nullptr) {
    DestroyAnyId(*core_, *held->first, step);
    held = core_->owners.Find(owner.value);
  }
  Finish(*core_, step);
}

void CmEngine::OnDeadline(TimePoint now, CmActions& actions) {
  Step step{now, actions};
  const size_t known = actions.settled.size();
  core_->discovery.OnDeadline(now, actions);
  SendHeld(*core_, known, step);
  OnEarlyDeadline(*core_, step);
  while (core_->deadlines.Earliest() <= now) {
    const DeadlineKey key = core_->deadlines.Front();
    if (key.kind == DeadlineKey::Kind::kId) {
      OnIdDeadline(*core_, *core_->FindId({key.value}), step);
    } else {
      OnConnectionDeadline(*core_, *core_->connections.ByLocalId(static_cast<uint32_t>(key.value)),
                           step);
    }
  }
  Finish(*core_, step);
}

TimePoint CmEngine::deadline() const {
  return Earlier(Earlier(core_->deadlines.Earliest(), core_->early.deadline()),
                 core_->discovery.deadline());
}

int CmEngine::QueryId(SessionId owner, CmHandle handle, IdInfo& out) const {
  const Id* id = Owned(*core_, owner, handle);
  if (id == nullptr) return EINVAL;
  out = InfoOf(*id);
  return 0;
}

int CmEngine::InitQpAttributes(SessionId owner, CmHandle handle, QpState state,
                               QpAttributes& out) const {
  const Id* id = Owned(*core_, owner, handle);
  if (id == nullptr) return EINVAL;
  return cm::InitQpAttributes(*id, core_->ConnectionOf(*id), state, out);
}

const CmCounters& CmEngine::counters() const { return core_->counters; }
uint64_t CmEngine::CaGuidFor(const wire::Gid& peer) const { return core_->CaGuidFor(peer); }
size_t CmEngine::id_count() const { return core_->ids.size(); }
size_t CmEngine::connection_count() const { return core_->connections.size(); }
size_t CmEngine::port_count() const { return core_->ports.size(); }

std::vector<ConnectionRow> CmEngine::Connections() const {
  std::vector<ConnectionRow> rows;
  rows.reserve(core_->connections.size());
  core_->connections.ForEach(
      [&rows](const Connection& connection) { rows.push_back(RowOf(connection)); });
  return rows;
}

std::vector<IdRow> CmEngine::Ids() const {
  std::vector<IdRow> rows;
  rows.reserve(core_->ids.size());
  for (const auto& [handle, id] : core_->ids) rows.push_back(RowOf(id, InfoOf(id)));
  return rows;
}

std::vector<ResolvingId> CmEngine::Resolving() const {
  std::vector<ResolvingId> resolving;
  for (const auto& [handle, id] : core_->ids) {
    if (id.state == IdState::kResolvingAddress)
      resolving.push_back({id.owner, handle, id.local, id.remote, id.deadline});
  }
  return resolving;
}

void CmEngine::Keep(size_t connections) { core_->Keep(connections); }
bool CmEngine::Refill() { return core_->Refill(); }
bool CmEngine::wants_refill() const { return core_->kept_ids.count() < core_->wanted; }

void CmEngine::Name(CmHandle handle, uint32_t name) {
  if (Id* const id = core_->FindId(handle)) id->name = name;
}

}  // namespace rocegw::cm
