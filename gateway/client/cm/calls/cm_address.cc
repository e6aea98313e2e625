// SPDX-License-Identifier: Apache-2.0
// Calls on addresses of an id: binding, resolving and listening.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/cm/cm_event.h"
#include "gateway/client/cm/cm_place.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

using rocegw::client::CmError;
using rocegw::client::CmId;
using rocegw::client::CmStage;
using rocegw::client::FinishReal;
using rocegw::client::FromRdma;
using rocegw::client::IsOurs;
using rocegw::client::RealOf;
using rocegw::client::ToWire;

ROCEGW_EXPORT int rdma_bind_addr(rdma_cm_id* rdma, sockaddr* address) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_bind_addr)(rdma, address);
  CmId* id = FromRdma(rdma);
  if (const int chosen = ChooseSide(id, address, nullptr)) return CmError(chosen);
  if (rdma_cm_id* real = RealOf(rdma)) {
    const int result = ROCEGW_REAL(rdma_bind_addr)(real, address);
    if (result == 0) TakeRealPlace(id);
    return result;
  }
  rocegw_cm_bind request = {};
  int error = ToWire(address, &request.address);
  id->holds_port = true;
  if (error == 0) error = rocegw::client::CallForPlace(id, ROCEGW_MSG_CM_BIND, &request);
  if (error == 0) SetStage(id, CmStage::kBetween);
  return CmError(error);
}

ROCEGW_EXPORT int rdma_resolve_addr(rdma_cm_id* rdma, sockaddr* source, sockaddr* destination,
                                    int timeout_ms) {
  if (!IsOurs(rdma)) {
    return ROCEGW_REAL(rdma_resolve_addr)(rdma, source, destination, timeout_ms);
  }
  CmId* id = FromRdma(rdma);
  if (const int chosen = ChooseSide(id, source, destination)) return CmError(chosen);
  if (rdma_cm_id* real = RealOf(rdma)) {
    const int result = ROCEGW_REAL(rdma_resolve_addr)(real, source, destination, timeout_ms);
    if (result == 0) id->id.route.addr = real->route.addr;
    return FinishReal(rdma, result);
  }
  rocegw_cm_resolve_addr request = {};
  request.id = id->handle;
  request.timeout_ms = timeout_ms > 0 ? static_cast<uint32_t>(timeout_ms) : 0;
  int error = source != nullptr ? ToWire(source, &request.source) : 0;
  if (error == 0) error = ToWire(destination, &request.destination);
  if (error != 0) return CmError(error);
  if (request.source.port != 0) id->holds_port = true;
  // Set before the event exists, which another thread may take.
  const size_t length =
      destination->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  memcpy(&rdma->route.addr.dst_storage, destination, length);
  // An own address that belongs to no device is an error of the call.
  const CmStage right = source == nullptr ? CmStage::kNew : CmStage::kAsked;
  error = CmStep(id, right, ROCEGW_MSG_CM_RESOLVE_ADDR, &request);
  return error != 0 ? CmError(error) : Complete(id);
}

ROCEGW_EXPORT int rdma_resolve_route(rdma_cm_id* rdma, int timeout_ms) {
  if (rdma_cm_id* real = RealOf(rdma)) {
    return FinishReal(rdma, ROCEGW_REAL(rdma_resolve_route)(real, timeout_ms));
  }
  CmId* id = FromRdma(rdma);
  rocegw_cm_resolve_route request = {};
  request.timeout_ms = timeout_ms > 0 ? static_cast<uint32_t>(timeout_ms) : 0;
  const int error = CmStep(id, CmStage::kAddressKnown, ROCEGW_MSG_CM_RESOLVE_ROUTE, &request);
  return error != 0 ? CmError(error) : Complete(id);
}

ROCEGW_EXPORT int rdma_listen(rdma_cm_id* rdma, int backlog) {
  if (rdma_cm_id* real = RealOf(rdma)) {
    const int result = ROCEGW_REAL(rdma_listen)(real, backlog);
    if (result == 0 && IsOurs(rdma)) TakeRealPlace(FromRdma(rdma));
    return result;
  }
  CmId* id = FromRdma(rdma);
  rocegw_cm_listen request = {};
  request.backlog = backlog > 0 ? static_cast<uint32_t>(backlog) : 0;
  id->holds_port = true;
  int error = CmCall(id, ROCEGW_MSG_CM_LISTEN, &request);
  // An unbound id has a port now.
  if (error == 0) error = QueryPlace(id);
  if (error == 0) error = ListenBeside(id, backlog);
  return CmError(error);
}

namespace {

// The ports of IPv4 and IPv6 addresses have the same offset.
__be16 PortOf(const sockaddr* address) {
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return 0;
  return reinterpret_cast<const sockaddr_in*>(address)->sin_port;
}

}  // namespace

ROCEGW_EXPORT __be16 rdma_get_src_port(rdma_cm_id* id) { return PortOf(rdma_get_local_addr(id)); }
ROCEGW_EXPORT __be16 rdma_get_dst_port(rdma_cm_id* id) { return PortOf(rdma_get_peer_addr(id)); }
