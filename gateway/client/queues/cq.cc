// SPDX-License-Identifier: Apache-2.0
// Completion queues and their event channels.
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "gateway/client/device/event_acks.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/in_process.h"
#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/process/real.h"
#include "gateway/client/queues/completion_queue.h"
#include "gateway/client/queues/queue_pair.h"

namespace rocegw::client {

namespace {

// Returns the rings' memory from a reply; nullptr: invalid.
const void* FindRings(Session* session, const rocegw_cq_reply& reply) {
  if (reply.entries == 0 || (reply.entries & (reply.entries - 1)) != 0 || reply.worker_count == 0) {
    return nullptr;
  }
  return session->resolver()(reply.rings,
                             uint64_t{reply.worker_count} * reply.entries * sizeof(rocegw_cqe));
}

int MapCq(Session* session, const rocegw_cq_reply& reply, Cq* cq) {
  const void* rings = FindRings(session, reply);
  if (rings == nullptr) return EPROTO;
  const uint64_t control_size =
      sizeof(rocegw_cq_control) + uint64_t{reply.worker_count} * ROCEGW_CACHE_LINE;
  auto* control = static_cast<rocegw_cq_control*>(session->resolver()(reply.control, control_size));
  if (control == nullptr) return EPROTO;
  const int error = cq->rings.Init(control, rings, reply.entries, reply.worker_count);
  // A thread that runs the gateway itself cannot sleep until it has something.
  cq->rings.set_polling(PollingFromEnvironment(),
                        session->welcome().minor >= 3 && run_gateway == nullptr);
  return error;
}

// Waits until the program has acknowledged every event that it got for this queue.
void WaitForAcks(Cq* cq) {
  if (SessionOf(cq->ibv.context)->inherited()) return;
  pthread_mutex_lock(&cq->ibv.mutex);
  while (cq->ibv.comp_events_completed != cq->events_delivered ||
         cq->ibv.async_events_completed != cq->async_events_delivered) {
    pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
  }
  pthread_mutex_unlock(&cq->ibv.mutex);
}

}  // namespace

ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel,
                 int vector) {
  if (entries <= 0 || vector < 0 || vector >= context->num_comp_vectors) {
    errno = EINVAL;
    return nullptr;
  }
  auto* cq = MakeObject<Cq>();
  if (cq == nullptr) return nullptr;
  cq->id = AddObject(ObjectKind::kCq, cq);
  rocegw_create_cq request = {};
  request.context = FromIbv(context)->handle;
  request.entries = static_cast<uint32_t>(entries);
  request.channel = channel != nullptr ? FromIbv(channel)->handle : 0;
  request.comp_vector = static_cast<uint32_t>(vector);
  request.cookie = cq->id;
  rocegw_cq_reply reply;
  Session* session = SessionOf(context);
  int error = cq->id != 0 ? session->Call(ROCEGW_MSG_CREATE_CQ, &request, &reply) : ENOMEM;
  if (error == 0) {
    error = MapCq(session, reply, cq);
    if (error != 0) session->CallDestroy(ROCEGW_MSG_DESTROY_CQ, reply.handle);
  }
  if (error != 0) {
    RemoveObject(cq->id);
    free(cq);
    errno = error;
    return nullptr;
  }
  cq->ibv.context = context;
  cq->ibv.channel = channel;
  cq->ibv.cq_context = cq_context;
  cq->ibv.handle = reply.handle;
  cq->ibv.cqe = static_cast<int>(reply.entries);
  pthread_mutex_init(&cq->ibv.mutex, nullptr);
  pthread_cond_init(&cq->ibv.cond, nullptr);
  if (channel != nullptr) {
    pthread_mutex_lock(&context->mutex);
    ++channel->refcnt;
    pthread_mutex_unlock(&context->mutex);
  }
  return &cq->ibv;
}

int PollCompletions(Cq* cq, int count, ibv_wc* wc, uint64_t* made_ns) {
  CompletionRings& rings = cq->rings;
  Session* const session = SessionOf(cq->ibv.context);
  bool quiet = false;
  int got = rings.Poll(count, wc, &quiet, made_ns);
  if (got == 0 && run_gateway != nullptr && !session->inherited()) {
    run_gateway();
    got = rings.Poll(count, wc, &quiet, made_ns);
  }
  if (got != 0) return got;
  // Once the end is known, a program that empties the queue after an event gets the rest at once.
  if (!quiet && !session->known_dead()) return 0;
  // Objects that a forked child inherited belong to its parent.
  return session->CheckHungUp() && !session->inherited() ? rings.Flush(count, wc) : 0;
}

int PollCq(ibv_cq* cq, int count, ibv_wc* wc) {
  return PollCompletions(FromIbv(cq), count, wc, nullptr);
}

int RequestNotify(ibv_cq* cq, int solicited_only) {
  FromIbv(cq)->rings.Arm(solicited_only != 0);
  return 0;
}

int ModifyCq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  if (attr->attr_mask == 0) return 0;
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  rocegw_moderate_cq request = {};
  request.cq = cq->handle;
  request.count = attr->moderate.cq_count;
  request.period = attr->moderate.cq_period;
  rocegw_object_reply reply;
  return OfAnyDaemon(SessionOf(cq->context)->Call(ROCEGW_MSG_MODERATE_CQ, &request, &reply));
}

int ResizeCq(Cq* cq, int entries) {
  if (entries <= 0) return EINVAL;
  rocegw_resize_cq request = {};
  request.cq = cq->ibv.handle;
  request.entries = static_cast<uint32_t>(entries);
  rocegw_cq_reply reply;
  Session* session = SessionOf(cq->ibv.context);
  // Resizes run one at a time; the mutex is otherwise held for moments only.
  pthread_mutex_lock(&cq->ibv.mutex);
  cq->rings.Suspend();
  int error = OfAnyDaemon(session->Call(ROCEGW_MSG_RESIZE_CQ, &request, &reply));
  const void* rings = error == 0 ? FindRings(session, reply) : nullptr;
  if (error == 0 && (rings == nullptr || reply.worker_count != cq->rings.workers())) {
    rings = nullptr;
    error = EPROTO;
  }
  cq->rings.Resume(rings, reply.entries);
  if (error == 0) cq->ibv.cqe = static_cast<int>(reply.entries);
  pthread_mutex_unlock(&cq->ibv.mutex);
  return error;
}

}  // namespace rocegw::client

using rocegw::client::Channel;
using rocegw::client::Cq;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;
using rocegw::client::MakeObject;
using rocegw::client::SessionOf;

ROCEGW_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (!IsOurs(context)) return ROCEGW_REAL(ibv_create_comp_channel)(context);
  auto* channel = MakeObject<Channel>();
  if (channel == nullptr) return nullptr;
  rocegw_object_request request = {};
  request.handle = FromIbv(context)->handle;
  const int error = SessionOf(context)->CallForEvents(ROCEGW_MSG_CREATE_CHANNEL, &request,
                                                      &channel->handle, &channel->ibv.fd);
  if (error != 0) {
    free(channel);
    errno = error;
    return nullptr;
  }
  channel->ibv.context = context;
  channel->events = rocegw::client::Own(channel->ibv.fd);
  return &channel->ibv;
}

ROCEGW_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_destroy_comp_channel)(ibv);
  pthread_mutex_lock(&ibv->context->mutex);
  const bool busy = ibv->refcnt != 0;
  pthread_mutex_unlock(&ibv->context->mutex);
  if (busy) return rocegw::client::WithErrno(EBUSY);
  Channel* channel = FromIbv(ibv);
  const int error =
      SessionOf(ibv->context)->CallDestroy(ROCEGW_MSG_DESTROY_CHANNEL, channel->handle);
  if (error != 0) return rocegw::client::WithErrno(error);
  CloseOwn(&channel->events);
  free(channel);
  return 0;
}

ROCEGW_EXPORT ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                                    ibv_comp_channel* channel, int vector) {
  if (!IsOurs(context)) {
    return ROCEGW_REAL(ibv_create_cq)(context, entries, cq_context, channel, vector);
  }
  return rocegw::client::CreateCq(context, entries, cq_context, channel, vector);
}

ROCEGW_EXPORT int ibv_resize_cq(ibv_cq* cq, int entries) {
  if (!IsOurs(cq->context)) return ROCEGW_REAL(ibv_resize_cq)(cq, entries);
  return rocegw::client::WithErrno(rocegw::client::ResizeCq(FromIbv(cq), entries));
}

ROCEGW_EXPORT int ibv_destroy_cq(ibv_cq* ibv) {
  if (!IsOurs(ibv->context)) return ROCEGW_REAL(ibv_destroy_cq)(ibv);
  Cq* cq = FromIbv(ibv);
  const int error = SessionOf(ibv->context)->CallDestroy(ROCEGW_MSG_DESTROY_CQ, ibv->handle);
  if (error != 0) return rocegw::client::WithErrno(error);
  // Events that are still in the channel are skipped when they are read, since the number is not
  // used any more.
  rocegw::client::RemoveObject(cq->id);
  rocegw::client::WaitForAcks(cq);
  if (ibv->channel != nullptr) {
    pthread_mutex_lock(&ibv->context->mutex);
    --ibv->channel->refcnt;
    pthread_mutex_unlock(&ibv->context->mutex);
  }
  cq->rings.Destroy();
  pthread_cond_destroy(&ibv->cond);
  pthread_mutex_destroy(&ibv->mutex);
  free(cq);
  return 0;
}

ROCEGW_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  if (!IsOurs(channel->context)) return ROCEGW_REAL(ibv_get_cq_event)(channel, cq, cq_context);
  for (;;) {
    if (!IsStillOwn(FromIbv(channel)->events)) {
      errno = EBADF;
      return -1;
    }
    rocegw_completion_event event = {};
    // The C library's read: programs end threads that wait here with pthread_cancel.
    const ssize_t got = read(channel->fd, &event, sizeof(event));
    if (got == 0) {  // the gateway is lost
      rocegw::client::SessionOf(channel->context)->OnChannelEnd();
      errno = EIO;
    }
    if (got <= 0) return -1;
    const rocegw::client::ObjectLookup lookup(event.cookie, rocegw::client::ObjectKind::kCq);
    if (lookup.object() == nullptr) continue;
    auto* found = static_cast<Cq*>(lookup.object());
    ++found->events_delivered;
    *cq = &found->ibv;
    *cq_context = found->ibv.cq_context;
    return 0;
  }
}

ROCEGW_EXPORT void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  if (!IsOurs(cq->context)) {
    ROCEGW_REAL(ibv_ack_cq_events)(cq, count);
    return;
  }
  rocegw::client::AcknowledgeEvents(cq, cq->comp_events_completed, count);
}
