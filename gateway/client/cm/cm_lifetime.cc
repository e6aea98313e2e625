// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/cm/cm_lifetime.h"

#include <cerrno>
#include <cstdlib>

#include "gateway/client/cm/cm_acknowledge.h"
#include "gateway/client/cm/cm_channel.h"
#include "gateway/client/cm/cm_devices.h"
#include "gateway/client/cm/cm_multicast.h"
#include "gateway/client/cm/cm_real.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

void FreeId(CmId* id) {
  RemoveId(id);
  RemoveObject(id->cookie);
  if (id->id.event != nullptr) Acknowledge(id->id.event);
  WaitForAcknowledgements(id, EventsDelivered(id));
  if (id->synchronous != 0) DestroyChannel(FromRdma(id->id.channel));
  if (id->cm_device != nullptr) ReleaseCmDevice(id->cm_device);
  if (!id->delegated) free(id->id.route.path_rec);
  free(id->qp_init_attr);
  ForgetGroups(id);
  pthread_cond_destroy(&id->acknowledged);
  pthread_mutex_destroy(&id->lock);
  id->mark = 0;
  id->session->Release();
  free(id);
}

namespace {

// Implements rdma_create_id for queue pairs of that type; 0: the port space's type. Without a
// channel, the id gets its own. `handle`: the channel's handle in the session. Returns -1 and
// errno.
int CreateId(Session* session, rdma_event_channel* channel, uint32_t handle, rdma_cm_id** result,
             void* context, rdma_port_space port_space, uint32_t qp_type) {
  CmChannel* own = nullptr;
  if (channel == nullptr) {
    own = MakeChannel(session);
    if (own == nullptr) return -1;
    channel = &own->channel;
    handle = own->handle;
  }
  CmId* id = MakeId(session, channel, port_space);
  if (id == nullptr) {
    if (own != nullptr) DestroyChannel(own);
    return CmError(ENOMEM);
  }
  id->synchronous = own != nullptr ? 1 : 0;
  id->id.context = context;
  if (qp_type != 0) id->id.qp_type = static_cast<ibv_qp_type>(qp_type);
  rocegw_cm_create_id request = {};
  request.channel = handle;
  request.port_space = port_space;
  request.qp_type = qp_type;
  request.cookie = id->cookie;
  rocegw_object_reply reply;
  const int error = session->Call(ROCEGW_MSG_CM_CREATE_ID, &request, &reply);
  if (error != 0) {
    FreeId(id);
    return CmError(error);
  }
  EnterId(id, reply.handle);
  *result = &id->id;
  return 0;
}

// Moves the id to another channel with all unread events; *delivered is the number of read ones.
int MoveEvents(CmId* id, CmChannel* to, uint32_t* delivered) {
  constexpr uint32_t kUnreadEventsMove = 14;
  CmChannel* from = FromRdma(id->id.channel);
  rocegw_cm_migrate request = {};
  request.id = id->handle;
  request.channel = to->handle;
  const bool unread = id->session->welcome().minor >= kUnreadEventsMove;
  rocegw_object_reply reply;
  if (const int failure = ReadyToMigrate(id, to)) return failure;
  StopTaking(from);
  *delivered = EventsDelivered(id);
  // A request to the installed library has no handle at the daemon.
  int error = id->handle == 0 ? 0
                              : id->session->Call(ROCEGW_MSG_CM_MIGRATE, &request, &reply, nullptr,
                                                  unread ? from->events.number : -1);
  if (error == 0) error = MigrateReal(id, to);
  ResumeTaking(from);
  return error;
}

int CreateIdOn(CmChannel* channel, rdma_cm_id** result, void* context, rdma_port_space port_space) {
  Session* session = nullptr;
  uint32_t handle = 0;
  if (const int error = JoinGateway(channel, &session, &handle)) return CmError(error);
  const int created = CreateId(session, &channel->channel, handle, result, context, port_space, 0);
  const int saved = errno;
  session->Release();
  errno = saved;
  return created;
}

}  // namespace

int CreateSynchronousId(Session* session, rdma_cm_id** result, void* context,
                        rdma_port_space port_space, uint32_t qp_type) {
  const int created = CreateId(session, nullptr, 0, result, context, port_space, qp_type);
  const int saved = errno;
  session->Release();
  errno = saved;
  return created;
}

int DestroyId(CmId* id) {
  if (DestroyReal(id) != 0) return -1;
  if (id->handle != 0) {
    // Another program may want a port at once. All else that an id holds is of use to this program
    // only, whose later requests are executed behind this one.
    const bool waits = id->holds_port || !SavesRequests(id);
    const int error = waits ? id->session->CallDestroy(ROCEGW_MSG_CM_DESTROY_ID, id->handle)
                            : id->session->TellObject(ROCEGW_MSG_CM_DESTROY_ID, id->handle);
    // A dead session has no ids any more.
    if (waits && error != 0) return CmError(error);
  }
  FreeId(id);
  return 0;
}

int MigrateId(CmId* id, rdma_event_channel* channel) {
  rdma_cm_id* const rdma = &id->id;
  CmChannel* own = nullptr;
  if (channel == nullptr) {
    own = MakeChannel(id->session);
    if (own == nullptr) return -1;
    channel = &own->channel;
  } else if (!IsOurs(channel) || FromRdma(channel)->session != id->session) {
    return CmError(EINVAL);
  }
  uint32_t delivered = 0;
  const int error = MoveEvents(id, FromRdma(channel), &delivered);
  if (error != 0) {
    if (own != nullptr) DestroyChannel(own);
    return CmError(error);
  }
  if (id->synchronous != 0) {
    if (rdma->event != nullptr) {
      Acknowledge(rdma->event);
      rdma->event = nullptr;
    }
    DestroyChannel(FromRdma(rdma->channel));
  }
  // Other threads may be in calls of the id, so an unchanged value is not written.
  const int synchronous = own != nullptr ? 1 : 0;
  if (id->synchronous != synchronous) id->synchronous = synchronous;
  rdma->channel = channel;
  // Events read from the old channel belong to its users; when they are acknowledged, all later
  // ones are on the new channel.
  WaitForAcknowledgements(id, delivered);
  return 0;
}

}  // namespace rocegw::client

using rocegw::client::AcquireForCm;
using rocegw::client::CmError;
using rocegw::client::FromRdma;
using rocegw::client::IsOurs;
using rocegw::client::Session;

ROCEGW_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                                 rdma_port_space port_space) {
  if (channel != nullptr && !IsOurs(channel)) {
    return ROCEGW_REAL(rdma_create_id)(channel, id, context, port_space);
  }
  if (channel != nullptr) {
    return rocegw::client::CreateIdOn(FromRdma(channel), id, context, port_space);
  }
  Session* session = AcquireForCm();
  if (session == nullptr) {
    const auto real = ROCEGW_REAL(rdma_create_id);
    return real != nullptr ? real(channel, id, context, port_space) : CmError(ENODEV);
  }
  return rocegw::client::CreateSynchronousId(session, id, context, port_space, 0);
}

ROCEGW_EXPORT int rdma_destroy_id(rdma_cm_id* rdma) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_destroy_id)(rdma);
  return rocegw::client::DestroyId(FromRdma(rdma));
}

ROCEGW_EXPORT int rdma_migrate_id(rdma_cm_id* rdma, rdma_event_channel* channel) {
  if (!IsOurs(rdma)) return ROCEGW_REAL(rdma_migrate_id)(rdma, channel);
  return rocegw::client::MigrateId(FromRdma(rdma), channel);
}
