// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/objects/async_events.h"

#include "gateway/transport/queues/shared_receives.h"
#include "gateway/worker/objects/worker_session.h"

namespace rocegw::worker {

void AsyncEvents::Raise(const transport::QpContext& qp, verbs::AsyncEvent event) {
  if (event == verbs::AsyncEvent::kSrqLimitReached) return RaiseLimitReached(qp.srq->config());
  AsyncEventRaised raised{qp.config.session,   event,          ROCEGW_OBJECT_QP,
                          qp.config.qp_handle, qp.rare.cookie, qp.config.qpn};
  // An XRC receiving queue pair belongs to the domain, whichever session its messages are for.
  const QpSlot* const slot = qps_.Find(qp.handle);
  if (qp.config.type == verbs::QpType::kXrcReceive && slot != nullptr)
    raised.session = slot->session->link.session;
  if (event == verbs::AsyncEvent::kCqError) {
    raised.session = qp.config.session;
    const verbs::CompletionQueue& cq = qp.send_cq->TakeOverrun() ? *qp.send_cq : *qp.recv_cq;
    raised.kind = ROCEGW_OBJECT_CQ;
    raised.handle = cq.config().cq_handle;
    raised.cookie = cq.config().cookie;
  }
  control_.Notify({0, raised});
}

void AsyncEvents::RaiseLimitReached(const verbs::SrqConfig& srq) {
  control_.Notify({0, AsyncEventRaised{.session = srq.session,
                                       .event = verbs::AsyncEvent::kSrqLimitReached,
                                       .kind = ROCEGW_OBJECT_SRQ,
                                       .handle = srq.srq_handle,
                                       .cookie = srq.cookie,
                                       .qpn = {}}});
}

}  // namespace rocegw::worker
