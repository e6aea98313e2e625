// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/queue_control.h"

#include <cerrno>

namespace rocegw::worker {

ControlReply QueueControl::Do(const LinkCq& body) {
  WorkerSession* const session = sessions_.Find(body.config.session);
  if (session == nullptr) return Failed(ENOENT);
  auto cq = std::make_unique<verbs::CompletionQueue>(body.config);
  completions_.Add(*cq);
  cq->owner = session->index;
  return Failed(session->cqs.emplace(body.config.cq_handle, std::move(cq)).second ? 0 : EEXIST);
}

ControlReply QueueControl::Do(const UnlinkCq& body) {
  const verbs::CompletionQueue* const cq = sessions_.CqOf(body.session, body.cq_handle);
  if (cq == nullptr) return Failed(ENOENT);
  completions_.Remove(*cq);
  ControlReply reply;
  reply.events_reported = cq->events_sent;
  sessions_.Find(body.session)->cqs.erase(body.cq_handle);
  return reply;
}

ControlReply QueueControl::Do(const ResizeCq& body) {
  verbs::CompletionQueue* const cq = sessions_.CqOf(body.session, body.cq_handle);
  if (cq == nullptr) return Failed(ENOENT);
  return Failed(cq->Resize(body.ring, body.entries, body.most) ? 0 : ENOSPC);
}

ControlReply QueueControl::Do(const ModerateCq& body) {
  verbs::CompletionQueue* const cq = sessions_.CqOf(body.session, body.cq_handle);
  if (cq == nullptr) return Failed(ENOENT);
  cq->Moderate(*body.moderation, body.count, body.period);
  // An event that was deferred by the old settings may be due now.
  completions_.SendIfDue(*cq);
  return {};
}

ControlReply QueueControl::Do(const LinkSrq& body) {
  WorkerSession* const session = sessions_.Find(body.config.session);
  if (session == nullptr) return Failed(ENOENT);
  if (session->srqs.contains(body.config.srq_handle)) return Failed(EEXIST);
  auto srq = std::make_unique<transport::SharedReceives>(body.config);
  if (body.config.domain.value != 0) {
    transport::XrcDomain* const domain = sessions_.DomainOf(body.config.domain);
    verbs::CompletionQueue* const cq = sessions_.CqOf(body.config.session, body.config.cq);
    if (domain == nullptr || cq == nullptr) return Failed(EINVAL);
    if (!domain->Add({srq.get(), cq, session->index})) return Failed(EEXIST);
  }
  session->srqs.emplace(body.config.srq_handle, std::move(srq));
  return {};
}

ControlReply QueueControl::Do(const UnlinkSrq& body) {
  const transport::SharedReceives* const srq = sessions_.SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  if (transport::XrcDomain* const domain = sessions_.DomainOf(srq->config().domain))
    domain->Remove(srq->config().number);
  sessions_.Find(body.session)->srqs.erase(body.srq_handle);
  return {};
}

ControlReply QueueControl::Do(const ArmSrq& body) {
  transport::SharedReceives* const srq = sessions_.SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  srq->Arm(body.limit);
  if (srq->TakeLimitEvent()) events_.RaiseLimitReached(srq->config());
  return {};
}

ControlReply QueueControl::Do(const ResizeSrq& body) {
  transport::SharedReceives* const srq = sessions_.SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  srq->Grow(body.entries, body.order, body.slots);
  return {};
}

ControlReply QueueControl::Do(const QuerySrq& body) {
  const transport::SharedReceives* const srq = sessions_.SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  ControlReply reply;
  reply.srq_limit = srq->limit();
  return reply;
}

ControlReply QueueControl::Do(const SnapshotSrqs&) {
  ControlReply reply;
  for (const auto& [id, session] : sessions_.all()) {
    for (const auto& [handle, srq] : session->srqs) {
      reply.srqs.push_back({.session = session->link.session,
                            .srq_handle = handle,
                            .limit = srq->limit(),
                            .waiting = srq->waiting(),
                            .taken = srq->taken(),
                            .limit_events = srq->limit_events()});
    }
  }
  return reply;
}

}  // namespace rocegw::worker
