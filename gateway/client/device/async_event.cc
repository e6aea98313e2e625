// SPDX-License-Identifier: Apache-2.0
// Asynchronous events of a context.
#include <unistd.h>

#include <cerrno>

#include "gateway/client/device/event_acks.h"
#include "gateway/client/device/object_ids.h"
#include "gateway/client/device/objects.h"
#include "gateway/client/process/real.h"

namespace rocegw::client {

namespace {

// Returns false if the object is destroyed, and its event void.
bool Deliver(const rocegw_async_event& record, ibv_async_event* event) {
  event->event_type = static_cast<ibv_event_type>(record.type);
  switch (record.kind) {
    case ROCEGW_OBJECT_QP: {
      const ObjectLookup lookup(record.cookie, ObjectKind::kQp);
      auto* qp = static_cast<Qp*>(lookup.object());
      if (qp == nullptr) return false;
      ++qp->events_delivered;
      event->element.qp = &qp->ibv;
      return true;
    }
    case ROCEGW_OBJECT_CQ: {
      const ObjectLookup lookup(record.cookie, ObjectKind::kCq);
      auto* cq = static_cast<Cq*>(lookup.object());
      if (cq == nullptr) return false;
      ++cq->async_events_delivered;
      event->element.cq = &cq->ibv;
      return true;
    }
    case ROCEGW_OBJECT_SRQ: {
      const ObjectLookup lookup(record.cookie, ObjectKind::kSrq);
      auto* srq = static_cast<Srq*>(lookup.object());
      if (srq == nullptr) return false;
      ++srq->events_delivered;
      event->element.srq = &srq->ibv;
      return true;
    }
    default:
      event->element.port_num = 1;
      return true;
  }
}

bool IsQpEvent(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return true;
    default:
      return false;
  }
}

}  // namespace

}  // namespace rocegw::client

using rocegw::client::Context;
using rocegw::client::FromIbv;
using rocegw::client::IsOurs;

ROCEGW_EXPORT int ibv_get_async_event(ibv_context* ibv, ibv_async_event* event) {
  if (!IsOurs(ibv)) return ROCEGW_REAL(ibv_get_async_event)(ibv, event);
  Context* context = FromIbv(ibv);
  for (;;) {
    if (!IsStillOwn(context->events)) {
      errno = EBADF;
      return -1;
    }
    rocegw_async_event record = {};
    const ssize_t got = read(ibv->async_fd, &record, sizeof(record));
    if (got < 0) return -1;
    if (got == 0) {
      // The gateway is lost, and its device with it; reported once.
      rocegw::client::SessionOf(ibv)->OnChannelEnd();
      if (__atomic_exchange_n(&context->fatal_reported, true, __ATOMIC_SEQ_CST)) {
        errno = EIO;
        return -1;
      }
      event->event_type = IBV_EVENT_DEVICE_FATAL;
      event->element.port_num = 1;
      return 0;
    }
    if (rocegw::client::Deliver(record, event)) return 0;
  }
}

namespace {

// An event does not name its device; its object does.
template <typename Ibv>
void Acknowledge(ibv_async_event* event, Ibv* ibv, uint32_t& completed) {
  if (IsOurs(ibv->context)) {
    rocegw::client::AcknowledgeEvents(ibv, completed, 1);
  } else {
    ROCEGW_REAL(ibv_ack_async_event)(event);
  }
}

}  // namespace

ROCEGW_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  if (event->event_type == IBV_EVENT_CQ_ERR) {
    ibv_cq* cq = event->element.cq;
    Acknowledge(event, cq, cq->async_events_completed);
  } else if (rocegw::client::IsQpEvent(event->event_type)) {
    ibv_qp* qp = event->element.qp;
    Acknowledge(event, qp, qp->events_completed);
  } else if (event->event_type == IBV_EVENT_SRQ_ERR ||
             event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
    ibv_srq* srq = event->element.srq;
    Acknowledge(event, srq, srq->events_completed);
  } else if (event->event_type == IBV_EVENT_WQ_FATAL) {
    ROCEGW_REAL(ibv_ack_async_event)(event);
  }
}
