// SPDX-License-Identifier: Apache-2.0
// Commands on an id before any message is sent: options, addresses, ports, routes, listening.
#include <algorithm>
#include <cerrno>

#include "gateway/cm/connection/handlers.h"
#include "gateway/cm/path/path_rules.h"

namespace rocegw::cm {
namespace {

constexpr uint8_t kAckTimeoutMask = 0x1F;

void BindToDevice(Id& id, const LocalAddress& address) {
  id.device = address.device;
  id.source_gid = address.gid;
  id.source_gid_index = address.gid_index;
  id.mtu = address.mtu;
  if (id.local.scope_id == 0) id.local.scope_id = address.scope_id;
}

// Return :: and ::1, or 0.0.0.0 and 127.0.0.1, by the family of the other address.
Endpoint Wildcard(const Endpoint& like) {
  return like.address.IsV4() ? Endpoint{wire::Gid::FromV4(0)} : Endpoint{};
}
wire::Gid Loopback(const Endpoint& like) {
  if (like.address.IsV4()) return wire::Gid::FromV4(0x7F000001);
  wire::Gid one;
  one.bytes[15] = 1;
  return one;
}

bool KnownPortSpace(PortSpace space) {
  return space == PortSpace::kIpoib || space == PortSpace::kTcp || space == PortSpace::kUdp ||
         space == PortSpace::kIb;
}

int FailResolve(Core& core, Id& id, int error, Step& step) {
  id.state = IdState::kBound;
  core.Emit(id, EventType::kAddrError, -error, step);
  return 0;
}

}  // namespace

int CreateNewId(Core& core, SessionId owner, CmHandle handle, const CreateId& command) {
  if (handle.value == 0 || (handle.value & kEngineHandleBit) != 0) return EINVAL;
  if (core.FindId(handle) != nullptr) return EEXIST;
  if (!KnownPortSpace(command.port_space)) return EPROTONOSUPPORT;
  Id* id = core.NewId(handle, owner);
  if (id == nullptr) return ENOMEM;
  id->port_space = command.port_space;
  id->qp_type = command.qp_type;
  return 0;
}

int SetIdOption(Core& core, Id& id, const SetOption& command) {
  switch (command.name) {
    case SetOption::Name::kTypeOfService:
      id.type_of_service = static_cast<uint8_t>(command.value);
      return 0;
    case SetOption::Name::kReuseAddress:
    case SetOption::Name::kAfOnly: {
      if (id.state != IdState::kIdle && id.state != IdState::kBound) return EINVAL;
      bool& option = command.name == SetOption::Name::kAfOnly ? id.af_only : id.reuse_address;
      option = command.value != 0;
      core.ports.SetOptions(id.port_space, id.local.port, id.handle, id.reuse_address, id.af_only);
      return 0;
    }
    case SetOption::Name::kAckTimeout:
      if ((!Requests(id.qp_type) && !Responds(id.qp_type)) || command.value > kAckTimeoutMask)
        return EINVAL;
      id.has_ack_timeout = true;
      id.ack_timeout = static_cast<uint8_t>(command.value);
      return 0;
  }
  return EINVAL;
}

int BindId(Core& core, Id& id, const Endpoint& address, bool automatic) {
  if (id.state != IdState::kIdle) return EINVAL;
  const LocalAddress* local = nullptr;
  if (!address.IsWildcard() && !address.IsLoopback()) {
    local = core.FindAddress(address.address);
    if (local == nullptr) return EADDRNOTAVAIL;
  }
  PortTable::Binding binding;
  binding.id = id.handle;
  binding.owner = id.owner;
  binding.address = address;
  binding.reuse = id.reuse_address;
  binding.af_only = id.af_only;
  binding.automatic = automatic;
  if (const int error = core.ports.Bind(id.port_space, binding, core.random); error != 0)
    return error;
  id.holds_port = true;
  id.local = binding.address;
  id.state = IdState::kBound;
  if (local != nullptr) BindToDevice(id, *local);
  return 0;
}

int StartResolve(Core& core, Id& id, const ResolveAddress& command, Step& step) {
  if (id.state != IdState::kIdle && id.state != IdState::kBound) return EINVAL;
  if (id.state == IdState::kIdle) {
    const Endpoint source = command.has_source ? command.source : Wildcard(command.destination);
    if (source.address.IsV4() != command.destination.address.IsV4()) return EINVAL;
    if (const int error = BindId(core, id, source, /*automatic=*/source.port == 0); error != 0)
      return error;
  } else if (id.local.address.IsV4() != command.destination.address.IsV4()) {
    // A program may bind :: and then connect to an IPv4 address; a concrete address cannot change
    // its family.
    if (!id.local.IsWildcard()) return EINVAL;
    id.local.address = Wildcard(command.destination).address;
  }
  id.remote = command.destination;
  if (id.remote.IsWildcard()) id.remote.address = Loopback(id.remote);
  id.state = IdState::kResolvingAddress;
  core.SetDeadline(id, step.now + Milliseconds(command.timeout_ms));
  return 0;
}

int FinishResolve(Core& core, Id& id, const AddressResolved& command, Step& step) {
  if (id.state != IdState::kResolvingAddress) return EINVAL;
  core.SetDeadline(id, kNever);
  if (command.error != 0) return FailResolve(core, id, command.error, step);
  const LocalAddress* local = core.FindAddress(command.source);
  if (local == nullptr) return FailResolve(core, id, ENODEV, step);
  const bool free_to_choose = id.local.IsWildcard() || id.local.IsLoopback();
  if (!free_to_choose && id.local.address != command.source)
    return FailResolve(core, id, EINVAL, step);
  if (id.local.IsWildcard())
    id.local.address = id.remote.IsLoopback() ? Loopback(id.remote) : command.source;
  BindToDevice(id, *local);
  if (command.mtu != 0) id.mtu = std::min(id.mtu, command.mtu);
  id.destination_gid = command.destination;
  id.hop_limit = command.hop_limit;
  id.state = IdState::kAddressResolved;
  if (command.may_ask && id.qp_type != QpType::kUd)
    core.Ask(id.source_gid, id.destination_gid, step);
  core.Emit(id, EventType::kAddrResolved, 0, step);
  return 0;
}

int ResolveIdRoute(Core& core, Id& id, Step& step) {
  if (id.state != IdState::kAddressResolved) return EINVAL;
  id.path_mtu = PathMtuCode(id.mtu);
  if (id.path_mtu == 0) {
    core.Emit(id, EventType::kRouteError, -EINVAL, step);
    return 0;
  }
  id.flow_label = FlowLabel(id.local, id.remote);
  id.traffic_class = id.type_of_service;
  id.state = IdState::kRouteResolved;
  core.Emit(id, EventType::kRouteResolved, 0, step);
  return 0;
}

int ListenOn(Core& core, Id& id, const Listen& command) {
  if (id.state == IdState::kIdle) {
    if (const int error = BindId(core, id, Endpoint{wire::Gid::FromV4(0)}, /*automatic=*/false);
        error != 0) {
      return error;
    }
  }
  if (id.state != IdState::kBound) return EINVAL;
  if (const int error = core.ports.Listen(id.port_space, id.local.port, id.handle); error != 0)
    return error;
  id.backlog = command.backlog == 0 ? core.config.max_backlog
                                    : std::min(command.backlog, core.config.max_backlog);
  id.state = IdState::kListening;
  return 0;
}

void OnIdDeadline(Core& core, Id& id, Step& step) {
  core.SetDeadline(id, kNever);
  if (id.state == IdState::kResolvingAddress) FailResolve(core, id, ETIMEDOUT, step);
}

}  // namespace rocegw::cm
