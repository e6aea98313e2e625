// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/incoming.h"

#include "gateway/cm/path/path_rules.h"

namespace rocegw::cm {

IncomingVerdict Match(Core& core, const Inbound& in, uint64_t service_id, QpType type,
                      std::span<const uint8_t, wire::kIpCmHeaderLength> header, Incoming& out) {
  PortSpace space{};
  if (!ParseServiceId(service_id, space, out.port)) return IncomingVerdict::kNoService;
  const bool readable = wire::DecodeIpCm(header, out.header);
  bool port_open = false;
  // A request to a loopback address carries the address at which it arrived.
  out.local = core.FindAddress(in.meta.destination);
  const uint64_t pool = out.local == nullptr ? 0 : out.local->pool;
  const CmHandle handle =
      core.ports.FindListener(space, out.port, out.header.destination, pool, &port_open);
  if (!port_open) return IncomingVerdict::kNoListener;
  const bool from_self = core.FindAddress(in.meta.source) != nullptr;
  if (!readable || !AcceptableAddresses(out.header, from_self)) return IncomingVerdict::kRefused;
  // The request must arrive at the address that it names. Loopback traffic stays inside the gateway
  // and has no packets.
  if (out.header.destination != in.meta.destination &&
      !Endpoint{out.header.destination}.IsLoopback()) {
    return IncomingVerdict::kRefused;
  }
  out.listener = core.FindId(handle);
  if (out.local == nullptr || out.listener == nullptr || out.listener->qp_type != type) {
    return IncomingVerdict::kRefused;
  }
  if (!core.backlog.HasPlace(*out.listener, in.meta.source)) {
    ++core.counters.backlog_full;
    return IncomingVerdict::kFull;
  }
  return IncomingVerdict::kListener;
}

Connection* NewPassive(Core& core, const Incoming& incoming, const Inbound& in, uint32_t flow_label,
                       uint8_t traffic_class, Step& step) {
  Id& listener = *incoming.listener;
  Id* id = core.NewId({++core.last_engine_handle}, listener.owner);
  if (id == nullptr) return nullptr;
  Connection* const connection = &core.NewConnection(*id, /*active=*/false, step);
  id->port_space = listener.port_space;
  id->qp_type = listener.qp_type;
  id->state = IdState::kConnecting;
  id->listener = listener.handle;
  id->local = {incoming.header.destination, incoming.port, incoming.local->scope_id, 0};
  id->remote = {incoming.header.source, incoming.header.source_port, incoming.local->scope_id, 0};
  id->device = incoming.local->device;
  id->source_gid = in.meta.destination;
  id->source_gid_index = incoming.local->gid_index;
  id->destination_gid = in.meta.source;
  id->mtu = incoming.local->mtu;
  id->path_mtu = PathMtuCode(id->mtu);
  id->flow_label = flow_label;
  id->traffic_class = traffic_class;
  core.backlog.Enter(listener, *id);

  connection->path = MadPath(in.meta.destination, in.meta.source, traffic_class, id->hop_limit);
  connection->peer_gsi = in.source_qpn;
  connection->transaction_id = in.mad.transaction_id;
  connection->path_mtu = id->path_mtu;
  return connection;
}

}  // namespace rocegw::cm
