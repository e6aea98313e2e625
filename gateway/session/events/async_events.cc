// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/events/async_events.h"

#include "gateway/session/object_bytes.h"
#include "gateway/session/objects/objects.h"

namespace rocegw::session {

EventChannel* AsyncEvents::Of(uint32_t context) {
  Context* const found = objects_.contexts.Find(context);
  return found == nullptr ? nullptr : found->async_events.get();
}

uint32_t AsyncEvents::Forget(uint32_t context, rocegw_object_kind kind, uint32_t handle) {
  EventChannel* const channel = Of(context);
  return channel == nullptr ? 0 : channel->Forget(SubjectOf(kind, handle));
}

void AsyncEvents::Raise(const worker::AsyncEventRaised& event) {
  rocegw_async_event record{};
  record.cookie = event.cookie;
  record.type = static_cast<uint32_t>(event.event);
  record.kind = event.kind;
  record.handle = event.handle;
  const auto send = [&](EventChannel& channel) {
    channel.Send(SubjectOf(event.kind, event.handle), BytesOf(record), /*once=*/true);
  };
  if (event.kind == ROCEGW_OBJECT_QP) {
    const Qp* const qp = objects_.qps.Find(event.handle);
    if (qp != nullptr && qp->qpn == event.qpn) send(*Of(qp->context));
  } else if (event.kind == ROCEGW_OBJECT_CQ) {
    const Cq* const cq = objects_.cqs.Find(event.handle);
    if (cq != nullptr && cq->cookie == event.cookie) send(*Of(cq->context));
  } else {
    objects_.contexts.ForEach([&](uint32_t, Context& context) { send(*context.async_events); });
  }
}

void AsyncEvents::RaiseOfPort(uint32_t device, uint32_t type) {
  rocegw_async_event record{};
  record.type = type;
  record.kind = ROCEGW_OBJECT_PORT;
  record.handle = 1;  // port number
  objects_.contexts.ForEach([&](uint32_t, Context& context) {
    if (context.device != device) return;
    context.async_events->Send(SubjectOf(record.kind, record.handle), BytesOf(record),
                               /*once=*/true);
  });
}

}  // namespace rocegw::session
