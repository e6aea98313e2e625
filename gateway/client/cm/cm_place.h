// SPDX-License-Identifier: Apache-2.0
// Addresses and device of an id, as the daemon states them. Errno values. Control path; any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/cm/cm_id.h"

namespace rocegw::client {

// EINVAL for families other than IPv4 and IPv6, as in librdmacm.
int ToWire(const sockaddr* from, rocegw_sockaddr* to);
// Addresses and device of an id, from an event or a reply.
struct CmPlace {
  int32_t device;
  const rocegw_sockaddr* source;
  const rocegw_sockaddr* destination;
  const uint8_t* sgid;
  const uint8_t* dgid;
  uint32_t path_mtu;
  uint32_t traffic_class;
  uint32_t flow_label;
};
int TakePlace(CmId* id, const CmPlace& place);
int QueryPlace(CmId* id);

int TakeReply(CmId* id, const rocegw_cm_id_reply& reply);

// Sends a request whose answer states the id's addresses. Older daemons may leave them out; then
// they are queried.
template <typename Request>
int CallForPlace(CmId* id, uint32_t type, Request* request) {
  request->id = id->handle;
  rocegw_cm_id_reply reply;
  const int error = id->session->Call(type, request, &reply);
  if (error != 0) return error;
  return reply.header.length >= sizeof(reply) ? TakeReply(id, reply) : QueryPlace(id);
}

}  // namespace rocegw::client
