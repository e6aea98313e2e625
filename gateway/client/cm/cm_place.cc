// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_place.h"

#include <arpa/inet.h>
#include <infiniband/sa.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/device/objects.h"

namespace rocegw::client {

namespace {

constexpr uint8_t kEqualTo = 2;  // selector in path records
constexpr uint8_t kPort = 1;

void FromWire(const rocegw_sockaddr& from, sockaddr_storage* to) {
  memset(to, 0, sizeof(*to));
  if (from.family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(to);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(from.port);
    memcpy(&v4->sin_addr, from.address, sizeof(v4->sin_addr));
  } else if (from.family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(to);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(from.port);
    v6->sin6_flowinfo = htonl(from.flow_info);
    v6->sin6_scope_id = from.scope_id;
    memcpy(&v6->sin6_addr, from.address, sizeof(v6->sin6_addr));
  }
}

int TakePath(CmId* id, const CmPlace& place) {
  rdma_route& route = id->id.route;
  if (route.path_rec == nullptr) {
    route.path_rec = MakeObject<ibv_sa_path_rec>();
    if (route.path_rec == nullptr) return ENOMEM;
  }
  route.num_paths = 1;
  ibv_sa_path_rec& path = *route.path_rec;
  memcpy(path.dgid.raw, place.dgid, sizeof(path.dgid.raw));
  memcpy(path.sgid.raw, place.sgid, sizeof(path.sgid.raw));
  path.flow_label = htonl(place.flow_label);
  path.hop_limit = 64;
  path.traffic_class = static_cast<uint8_t>(place.traffic_class);
  path.reversible = 1;
  path.numb_path = 1;
  path.pkey = 0xffff;
  path.mtu_selector = kEqualTo;
  path.mtu = static_cast<uint8_t>(place.path_mtu);
  path.rate_selector = kEqualTo;
  path.rate = IBV_RATE_25_GBPS;
  path.packet_life_time_selector = kEqualTo;
  path.packet_life_time = 0;
  return 0;
}

}  // namespace

int ToWire(const sockaddr* from, rocegw_sockaddr* to) {
  *to = {};
  if (from->sa_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, from, sizeof(v4));
    to->family = AF_INET;
    to->port = ntohs(v4.sin_port);
    memcpy(to->address, &v4.sin_addr, sizeof(v4.sin_addr));
    return 0;
  }
  if (from->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    memcpy(&v6, from, sizeof(v6));
    to->family = AF_INET6;
    to->port = ntohs(v6.sin6_port);
    to->scope_id = v6.sin6_scope_id;
    to->flow_info = ntohl(v6.sin6_flowinfo);
    memcpy(to->address, &v6.sin6_addr, sizeof(v6.sin6_addr));
    return 0;
  }
  return EINVAL;
}

int TakePlace(CmId* id, const CmPlace& place) {
  rdma_addr& address = id->id.route.addr;
  if (place.source->family != 0) FromWire(*place.source, &address.src_storage);
  if (place.destination->family != 0) FromWire(*place.destination, &address.dst_storage);
  if (place.device < 0) return 0;
  memcpy(address.addr.ibaddr.sgid.raw, place.sgid, 16);
  memcpy(address.addr.ibaddr.dgid.raw, place.dgid, 16);
  address.addr.ibaddr.pkey = 0xffff;
  id->id.port_num = kPort;
  if (id->id.verbs == nullptr) {
    id->cm_device = AcquireCmDevice(id->session, static_cast<uint32_t>(place.device));
    if (id->cm_device == nullptr) return errno;
    id->id.verbs = id->cm_device->context;
    id->id.pd = id->cm_device->pd;
  }
  return place.path_mtu != 0 ? TakePath(id, place) : 0;
}

int TakeReply(CmId* id, const rocegw_cm_id_reply& reply) {
  return TakePlace(id, {reply.device, &reply.source, &reply.destination, reply.sgid, reply.dgid,
                        reply.path_mtu, reply.traffic_class, reply.flow_label});
}

int QueryPlace(CmId* id) {
  rocegw_object_request request = {};
  request.handle = id->handle;
  rocegw_cm_id_reply reply;
  const int error = id->session->Call(ROCEGW_MSG_CM_QUERY_ID, &request, &reply);
  return error != 0 ? error : TakeReply(id, reply);
}

}  // namespace rocegw::client
