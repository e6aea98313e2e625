// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/cm_channel.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

void SetPort(sockaddr_storage* address, uint16_t port) {
  // The port sits at the same place in both families.
  reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
}

}  // namespace

CmChannel::CmChannel() : channel_(rdma_create_event_channel()) {
  CheckErrno(channel_ != nullptr, "rdma_create_event_channel");
}

CmChannel::~CmChannel() { rdma_destroy_event_channel(channel_); }

bool CmChannel::Pending() {
  pollfd wait{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

CmEvent CmChannel::Wait(const char* what) {
  pollfd wait{.fd = channel_->fd, .events = POLLIN, .revents = 0};
  Check(poll(&wait, 1, kCmTimeoutMs) > 0, "no CM event within ", kCmTimeoutMs, " ms: ", what);
  rdma_cm_event* event = nullptr;
  CheckErrno(rdma_get_cm_event(channel_, &event) == 0, "rdma_get_cm_event");
  CmEvent copy{.type = event->event,
               .status = event->status,
               .id = event->id,
               .listen_id = event->listen_id,
               .private_data = {},
               .responder_resources = 0,
               .initiator_depth = 0};
  switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_REJECTED:
      copy.private_data.assign(
          static_cast<const char*>(event->param.conn.private_data),
          event->param.conn.private_data != nullptr ? event->param.conn.private_data_len : 0);
      copy.responder_resources = event->param.conn.responder_resources;
      copy.initiator_depth = event->param.conn.initiator_depth;
      break;
    default:
      break;
  }
  rdma_ack_cm_event(event);
  return copy;
}

CmEvent CmChannel::Expect(rdma_cm_event_type type, const char* what) {
  CmEvent event = Wait(what);
  Check(event.type == type, "CM event ", rdma_event_str(event.type), " status ", event.status,
        " where ", rdma_event_str(type), " was due: ", what);
  return event;
}

OwnedId CreateId(CmChannel& channel) {
  rdma_cm_id* id = nullptr;
  CheckErrno(rdma_create_id(channel.get(), &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  return OwnedId(id);
}

uint16_t ListenAnyPort(rdma_cm_id* id, sockaddr_storage address) {
  SetPort(&address, 0);
  CheckErrno(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0, "rdma_bind_addr");
  CheckErrno(rdma_listen(id, 32) == 0, "rdma_listen");
  const uint16_t port = ntohs(rdma_get_src_port(id));
  Check(port != 0, "rdma_bind_addr chose no port");
  return port;
}

void Resolve(CmChannel& channel, rdma_cm_id* id, sockaddr_storage address, uint16_t port) {
  SetPort(&address, port);
  CheckErrno(
      rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address), kCmTimeoutMs) == 0,
      "rdma_resolve_addr");
  channel.Expect(RDMA_CM_EVENT_ADDR_RESOLVED, "resolving the address");
  CheckErrno(rdma_resolve_route(id, kCmTimeoutMs) == 0, "rdma_resolve_route");
  channel.Expect(RDMA_CM_EVENT_ROUTE_RESOLVED, "resolving the route");
}

}  // namespace rocegw::interop
