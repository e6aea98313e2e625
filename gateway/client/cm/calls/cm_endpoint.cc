// SPDX-License-Identifier: Apache-2.0
// Endpoints of rdma_cm (rdma_create_ep): calls wait for their events, and connection requests come
// from rdma_get_request.
#include <netinet/in.h>
#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/cm/cm_lifetime.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

constexpr int kResolveTimeoutMs = 2000;

int KeepForRequests(CmId* id, ibv_pd* pd, const ibv_qp_init_attr& attr) {
  id->qp_init_attr = MakeObject<ibv_qp_init_attr>();
  if (id->qp_init_attr == nullptr) return CmError(ENOMEM);
  *id->qp_init_attr = attr;
  if (pd != nullptr) id->id.pd = pd;
  return 0;
}

int PreparePassive(CmId* id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attr) {
  if (rdma_bind_addr(&id->id, info.ai_src_addr) != 0) return -1;
  return attr != nullptr ? KeepForRequests(id, pd, *attr) : 0;
}

int PrepareActive(CmId* id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attr) {
  sockaddr* source = info.ai_src_len != 0 ? info.ai_src_addr : nullptr;
  if (rdma_resolve_addr(&id->id, source, info.ai_dst_addr, kResolveTimeoutMs) != 0) return -1;
  if (rdma_resolve_route(&id->id, kResolveTimeoutMs) != 0) return -1;
  return attr != nullptr ? rdma_create_qp(&id->id, pd, attr) : 0;
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::CmError;
using rocegw::client::CmId;
using rocegw::client::FromRdma;
using rocegw::client::IsOurs;
using rocegw::client::Session;

ROCEGW_EXPORT int rdma_create_ep(rdma_cm_id** result, rdma_addrinfo* info, ibv_pd* pd,
                                 ibv_qp_init_attr* attr) {
  rdma_cm_id* rdma = nullptr;
  const auto port_space = static_cast<rdma_port_space>(info->ai_port_space);
  Session* session = rocegw::client::AcquireForCm();
  if (session == nullptr) {
    const auto real = ROCEGW_REAL(rdma_create_ep);
    return real != nullptr ? real(result, info, pd, attr) : CmError(ENODEV);
  }
  const bool xrc = info->ai_qp_type == IBV_QPT_XRC_SEND || info->ai_qp_type == IBV_QPT_XRC_RECV;
  const uint32_t qp_type = xrc ? static_cast<uint32_t>(info->ai_qp_type) : 0;
  if (rocegw::client::CreateSynchronousId(session, &rdma, nullptr, port_space, qp_type) != 0)
    return -1;
  CmId* id = FromRdma(rdma);
  if (info->ai_qp_type != 0) rdma->qp_type = static_cast<ibv_qp_type>(info->ai_qp_type);
  if (attr != nullptr) attr->qp_type = rdma->qp_type;
  const int error = (info->ai_flags & RAI_PASSIVE) != 0
                        ? rocegw::client::PreparePassive(id, *info, pd, attr)
                        : rocegw::client::PrepareActive(id, *info, pd, attr);
  if (error == 0) {
    *result = rdma;
    return 0;
  }
  const int saved = errno;
  rdma_destroy_ep(rdma);
  return CmError(saved);
}

ROCEGW_EXPORT void rdma_destroy_ep(rdma_cm_id* rdma) {
  if (!IsOurs(rdma)) {
    ROCEGW_REAL(rdma_destroy_ep)(rdma);
    return;
  }
  if (rdma->qp != nullptr) rdma_destroy_qp(rdma);
  if (rdma->srq != nullptr) rdma_destroy_srq(rdma);
  rdma_destroy_id(rdma);
}

ROCEGW_EXPORT int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** result) {
  if (!IsOurs(listen)) return ROCEGW_REAL(rdma_get_request)(listen, result);
  const CmId* listener = FromRdma(listen);
  if (listener->synchronous == 0) return CmError(EINVAL);
  if (listen->event != nullptr) {
    rdma_ack_cm_event(listen->event);
    listen->event = nullptr;
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(listen->channel, &event) != 0) return -1;
  int error = 0;
  if (event->status != 0) {
    error = event->status < 0 ? -event->status : event->status;
  } else if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    error = EINVAL;
  } else if (listener->qp_init_attr != nullptr) {
    ibv_qp_init_attr attr = *listener->qp_init_attr;
    if (rdma_create_qp(event->id, listen->pd, &attr) != 0) {
      error = errno;
      rdma_destroy_id(event->id);
      // The event's id is destroyed; the kept event must name an existing id.
      event->id = listen;
    }
  }
  if (error != 0) {
    listen->event = event;
    return CmError(error);
  }
  *result = event->id;
  event->id->event = event;
  return 0;
}
