// SPDX-License-Identifier: Apache-2.0
// Commands of the connection manager on ids and their channels. Each command answers at once; later
// results arrive as events.
#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/cm/cm_records.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/cm_requests.h"

namespace rocegw::session {
namespace {

// Levels and names of rdma_set_option (rdma/rdma_cma.h).
constexpr uint32_t kLevelId = 0;
constexpr uint32_t kLevelIb = 1;
constexpr uint32_t kOptionTos = 0;
constexpr uint32_t kOptionReuseAddress = 1;
constexpr uint32_t kOptionAfOnly = 2;
constexpr uint32_t kOptionAckTimeout = 3;
constexpr uint32_t kOptionIbPath = 1;

void AnswerWithId(ClientSession& session, const CmId& id, int error) {
  cm::IdInfo info;
  if (error == 0 && !session.cm().Query(session.id(), id.engine, info)) error = EINVAL;
  if (error != 0) return session.exchange().Error(error);
  session.exchange().Reply(ReplyOf(info));
}

// `qp_type`: enum rocegw_qp_type; 0: the port space's usual type.
std::optional<std::pair<cm::PortSpace, cm::QpType>> KindOf(uint32_t port_space, uint32_t qp_type) {
  switch (static_cast<cm::PortSpace>(port_space)) {
    case cm::PortSpace::kTcp:
    case cm::PortSpace::kIb:
      if (qp_type != 0 && qp_type != ROCEGW_QPT_RC && qp_type != ROCEGW_QPT_XRC_SEND &&
          qp_type != ROCEGW_QPT_XRC_RECV)
        return std::nullopt;
      return {{static_cast<cm::PortSpace>(port_space),
               qp_type == 0 ? cm::QpType::kRc : static_cast<cm::QpType>(qp_type)}};
    case cm::PortSpace::kUdp:
    case cm::PortSpace::kIpoib:
      if (qp_type != 0 && qp_type != ROCEGW_QPT_UD) return std::nullopt;
      return {{static_cast<cm::PortSpace>(port_space), cm::QpType::kUd}};
  }
  return std::nullopt;
}

void DestroyOne(ClientSession& session, uint32_t handle) {
  UnlinkRequest(session.objects().cm_ids, handle);
  auto id = session.objects().cm_ids.Remove(handle);
  auto& by_qpn = session.objects().cm_id_by_qpn;
  const uint32_t* const known = by_qpn.Find(id->qpn.value);
  if (known != nullptr && *known == handle) by_qpn.Erase(id->qpn.value);
  --session.objects().cm_channels.Find(id->channel)->users;
  session.release().FreeCmId(std::move(id));
}

bool IsRequest(const rocegw_cm_event& event) {
  return event.type == static_cast<uint32_t>(cm::EventType::kConnectRequest);
}

// Returns the id to which a record belongs: for a connection request, its listener.
EventChannel::Subject SubjectOf(std::span<const uint8_t> record) {
  const auto event = DecodeAs<rocegw_cm_event>(record);
  return IsRequest(event) ? event.listen_id : event.id;
}

std::optional<uint32_t> OptionValue(const rocegw_cm_set_option& asked) {
  if (asked.length == 1) return asked.value[0];
  if (asked.length != sizeof(uint32_t)) return std::nullopt;
  uint32_t value = 0;
  std::memcpy(&value, asked.value, sizeof value);
  return value;
}

// Moves an id to another channel, together with its waiting events.
void MoveEvents(ClientSession& session, const rocegw_cm_migrate& asked) {
  Objects& objects = session.objects();
  CmId* const id = objects.cm_ids.Find(asked.id);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  const uint32_t old = id->channel;
  CmChannel* const from = objects.cm_channels.Find(old);
  CmChannel* const to = objects.cm_channels.Find(asked.channel);
  // Connection requests move with their listener; an event that the client has read stays where it
  // was read.
  std::vector<uint32_t> moved = {asked.id};
  from->events->MoveWaiting(
      *to->events, asked.id,
      [&moved](std::span<const uint8_t> record) -> std::optional<EventChannel::Subject> {
        const auto event = DecodeAs<rocegw_cm_event>(record);
        if (!IsRequest(event)) return std::nullopt;
        moved.push_back(event.id);
        return event.id;
      });
  for (const uint32_t handle : moved) {
    // A request may have ended before the client read its event.
    CmId* const one = objects.cm_ids.Find(handle);
    if (one == nullptr || one->channel != old) continue;
    one->events_moved += from->events->Forget(handle);
    one->channel = asked.channel;
    --from->users;
    ++to->users;
  }
  session.exchange().Done();
}

// Takes back what the program has not read of the channel, then moves the id's events.
void TakeBackEvents(ClientSession& session, const rocegw_cm_migrate& asked, EventChannel& from,
                    UniqueFd client_end) {
  struct Taken {
    UniqueFd client_end;
    EventChannel::Unread unread;
  };
  auto taken = std::make_shared<Taken>(Taken{std::move(client_end), {}});
  from.Hold();
  session.exchange().RunBlocking(
      [taken] { taken->unread = EventChannel::ReadUnread(taken->client_end.get()); },
      [&session, asked, &from, taken] {
        from.TakeBack(std::move(taken->unread), SubjectOf);
        MoveEvents(session, asked);
      });
}

}  // namespace

void CmCreateChannel(ClientSession& session, Request&) {
  if (session.event_limits().full())
    return session.ReplyBound("event channels", session.event_limits().most_channels());
  auto channel = std::make_unique<CmChannel>();
  auto pair = session.event_limits().NewPair(channel->descriptors);
  if (!pair.ok()) return session.exchange().Error(pair.status().error());
  channel->events = std::make_unique<EventChannel>(session.loop(), session.event_limits().backlog(),
                                                   std::move(pair->ours), pair->client.get());
  channel->events->Reserve(session.ids_ahead());
  const uint32_t handle = session.objects().cm_channels.Add(std::move(channel));
  session.exchange().Object(handle, 0, pair->client.get());
}

void CmDestroyChannel(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const CmChannel* const channel = session.objects().cm_channels.Find(handle);
  if (channel == nullptr) return session.exchange().Error(EINVAL);
  if (channel->users != 0) return session.exchange().Error(EBUSY);
  session.objects().cm_channels.Remove(handle);
  session.exchange().Done();
}

void CmCreateId(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_create_id>();
  CmChannel* const channel = session.objects().cm_channels.Find(asked.channel);
  const auto kind = KindOf(asked.port_space, asked.qp_type);
  if (channel == nullptr || !kind) return session.exchange().Error(EINVAL);
  if (const int error = session.quota().Take(Resource::kCmIds))
    return session.exchange().Error(error);
  const cm::CmHandle engine = session.cm().NextHandle();
  if (const int error =
          session.cm().Run(session, engine, cm::CreateId{kind->first, kind->second})) {
    session.quota().Give(Resource::kCmIds);
    return session.exchange().Error(error);
  }
  auto id = session.NewCmId();
  id->engine = engine;
  id->channel = asked.channel;
  id->cookie = asked.cookie;
  id->port_space = kind->first;
  ++channel->users;
  const uint32_t handle = session.objects().cm_ids.Add(std::move(id));
  session.cm().Name(engine, handle);
  session.exchange().Object(handle, 0);
}

void CmDestroyId(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  Objects& objects = session.objects();
  const CmId* const id = session.cm().Named(session, handle);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  session.cm().Run(session, id->engine, cm::DestroyId{});
  // Requests that the program never used are destroyed with their listener.
  while (id->first_request != 0) DestroyOne(session, id->first_request);
  const uint32_t events =
      id->events_moved + objects.cm_channels.Find(id->channel)->events->Forget(handle);
  DestroyOne(session, handle);
  session.exchange().Object(0, events);
}

void CmBind(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_bind>();
  const CmId* const id = session.cm().Named(session, asked.id);
  const auto address = EndpointOf(asked.address);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  if (!address || asked.address.family == 0) return session.exchange().Error(EAFNOSUPPORT);
  int error = session.cm().LocalAddress(session, *address);
  if (error == 0) error = session.cm().Run(session, id->engine, cm::Bind{*address});
  if (error == EADDRINUSE) {
    session.reports().Tell("ADDRESS_IN_USE", session.pool().name(), std::to_string(address->port),
                           session.pool().name() + ": port " + std::to_string(address->port) +
                               " is taken by another listener on that address");
  }
  AnswerWithId(session, *id, error);
}

void CmResolveAddr(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_resolve_addr>();
  const CmId* const id = session.cm().Named(session, asked.id);
  const auto source = EndpointOf(asked.source);
  const auto destination = EndpointOf(asked.destination);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  if (!source || !destination || asked.destination.family == 0)
    return session.exchange().Error(EAFNOSUPPORT);
  if (asked.source.family != 0) {
    if (const int error = session.cm().LocalAddress(session, *source))
      return session.exchange().Error(error);
  }
  cm::ResolveAddress resolve;
  resolve.has_source = asked.source.family != 0;
  resolve.source = *source;
  resolve.destination = *destination;
  // The program's timeout limits the wait for the next hop.
  constexpr uint32_t kLookupMs = CmBinding::kLookupMs;
  resolve.timeout_ms = asked.timeout_ms + std::min(kLookupMs, UINT32_MAX - asked.timeout_ms);
  if (const int error = session.cm().Run(session, id->engine, resolve))
    return session.exchange().Error(error);
  // An id that was bound before sends from that address.
  cm::IdInfo info;
  session.cm().Query(session.id(), id->engine, info);
  session.cm().ResolveAddress(session, id->engine, info.local, *destination,
                              Milliseconds(asked.timeout_ms));
  AnswerWithId(session, *id, 0);
}

void CmResolveRoute(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_resolve_route>();
  const CmId* const id = session.cm().Named(session, asked.id);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  AnswerWithId(session, *id, session.cm().Run(session, id->engine, cm::ResolveRoute{}));
}

void CmJoin(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_join>();
  const CmId* const id = session.cm().Named(session, asked.id);
  const auto group = EndpointOf(asked.group);
  cm::CmEvent event;
  if (id == nullptr || !session.cm().Query(session.id(), id->engine, event.info) ||
      event.info.qp_type != cm::QpType::kUd || event.info.device < 0 || !group ||
      !group->address.IsMulticast() || group->address.IsV4() != event.info.source_gid.IsV4()) {
    return session.exchange().Error(EINVAL);
  }
  if (const int error = session.rules().CheckPeer(session.pool(), group->address))
    return session.exchange().Error(error);
  event.type = cm::EventType::kMulticastJoin;
  event.info.destination_gid = group->address;
  event.param.qpn = kMulticastQpn;
  event.param.qkey = cm::kUdpQkey;
  rocegw_cm_event record = RecordOf(event);
  record.cookie = id->cookie;
  record.id = asked.id;
  record.join = asked.join;
  session.exchange().Done();
  session.objects().cm_channels.Find(id->channel)->events->Send(asked.id, BytesOf(record));
}

void CmListen(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_listen>();
  CmId* const id = session.cm().Named(session, asked.id);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  if (!id->listens) {
    if (const int error = session.rules().CheckDrain(session.pool(), "listener"))
      return session.exchange().Error(error);
    if (const int error = session.quota().Take(Resource::kListeners))
      return session.exchange().Error(error);
  }
  const int error = session.cm().Run(session, id->engine, cm::Listen{asked.backlog});
  if (error == 0) {
    id->listens = true;
  } else if (!id->listens) {
    session.quota().Give(Resource::kListeners);
  }
  AnswerWithId(session, *id, error);
}

void CmSetOption(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_set_option>();
  const CmId* const id = session.cm().Named(session, asked.id);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  // The path record of a program contains nothing that the addresses do not.
  if (asked.level == kLevelIb)
    return asked.option == kOptionIbPath ? session.exchange().Done()
                                         : session.exchange().Error(ENOSYS);
  using Name = cm::SetOption::Name;
  const auto value = OptionValue(asked);
  if (asked.level != kLevelId) return session.exchange().Error(ENOSYS);
  if (!value) return session.exchange().Error(EINVAL);
  cm::SetOption option;
  option.value = *value;
  switch (asked.option) {
    case kOptionTos:
      option.name = Name::kTypeOfService;
      break;
    case kOptionReuseAddress:
      option.name = Name::kReuseAddress;
      break;
    case kOptionAfOnly:
      option.name = Name::kAfOnly;
      break;
    case kOptionAckTimeout:
      option.name = Name::kAckTimeout;
      break;
    default:
      return session.exchange().Error(ENOSYS);
  }
  session.exchange().Answer(session.cm().Run(session, id->engine, option));
}

void CmMigrate(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_cm_migrate>();
  Objects& objects = session.objects();
  CmId* const id = session.cm().Named(session, asked.id);
  if (id == nullptr || objects.cm_channels.Find(asked.channel) == nullptr)
    return session.exchange().Error(EINVAL);
  if (id->channel == asked.channel) return session.exchange().Done();
  EventChannel& from = *objects.cm_channels.Find(id->channel)->events;
  // An older client passes no descriptor of its end, and keeps its unread events.
  if (request.passing < 0) return MoveEvents(session, asked);
  // No other request runs before the answer, so the channel exists until then.
  session.exchange().TakeDescriptor(
      request, {PassedKind::kEventChannel, from.client_cookie()},
      [&session, asked, &from](PassedDescriptor client_end) {
        client_end.fd.valid() ? TakeBackEvents(session, asked, from, std::move(client_end.fd))
                              : MoveEvents(session, asked);
      });
}

void CmQueryId(ClientSession& session, Request& request) {
  const CmId* const id = session.cm().Named(session, request.As<rocegw_object_request>().handle);
  if (id == nullptr) return session.exchange().Error(EINVAL);
  AnswerWithId(session, *id, 0);
}

}  // namespace rocegw::session
