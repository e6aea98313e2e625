// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/cm_engine.h"

#include <cerrno>

#include "gateway/cm/core.h"
#include "gateway/cm/dispatch.h"
#include "gateway/cm/handlers.h"

namespace rocegw::cm {
namespace {

// One command of an id that exists and belongs to the caller.
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
    Connection* connection = core.ConnectionOf(id);
    if (connection != nullptr) core.LeaveBacklog(*connection);
    return 0;
  }
};

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

metrics::DropReason CmEngine::OnDatagram(std::span<const uint8_t> bytes, const wire::RxMeta& meta,
                                         Qpn source_qpn, TimePoint now, CmActions& actions) {
  wire::CmMad mad;
  if (const DropReason reason = wire::DecodeMad(bytes, mad); reason != DropReason::kNone)
    return reason;
  return OnMad(mad, meta, source_qpn, now, actions);
}

metrics::DropReason CmEngine::OnMad(const wire::CmMad& mad, const wire::RxMeta& meta,
                                    Qpn source_qpn, TimePoint now, CmActions& actions) {
  Step step{now, actions};
  return Dispatch(*core_, {mad, meta, source_qpn}, step);
}

int CmEngine::OnCommand(const CmCommand& command, TimePoint now, CmActions& actions) {
  if (const auto* create = std::get_if<CreateId>(&command.body); create != nullptr) {
    return CreateNewId(*core_, command.owner, command.id, *create);
  }
  Id* id = core_->FindId(command.id);
  if (id == nullptr || id->owner != command.owner) return EINVAL;
  Step step{now, actions};
  return std::visit(Executor{*core_, *id, step}, command.body);
}

void CmEngine::DropOwner(SessionId owner, TimePoint now, CmActions& actions) {
  std::vector<CmHandle> handles;
  for (const auto& [handle, id] : core_->ids) {
    if (id->owner == owner) handles.push_back(handle);
  }
  Step step{now, actions};
  for (const CmHandle handle : handles) {
    // A listener takes its waiting requests along.
    if (Id* id = core_->FindId(handle); id != nullptr) DestroyAnyId(*core_, *id, step);
  }
}

void CmEngine::OnDeadline(TimePoint now, CmActions& actions) {
  Step step{now, actions};
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
}

TimePoint CmEngine::deadline() const {
  return Earlier(core_->deadlines.Earliest(), core_->early.deadline());
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
uint64_t CmEngine::ca_guid() const { return core_->config.ca_guid; }
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
  for (const auto& [handle, id] : core_->ids) rows.push_back(RowOf(*id, InfoOf(*id)));
  return rows;
}

}  // namespace rocegw::cm
