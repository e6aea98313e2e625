// SPDX-License-Identifier: Apache-2.0
// Control messages for shared receive queues. All queue pairs of one are on one worker, which takes
// receives from it without synchronisation.
#include <cerrno>

#include "gateway/worker/worker.h"

namespace rocegw::worker {

transport::SharedReceives* Worker::SrqOf(SessionId session, uint32_t handle) {
  WorkerSession* const owner = SessionOf(session);
  if (owner == nullptr) return nullptr;
  const auto it = owner->srqs.find(handle);
  return it == owner->srqs.end() ? nullptr : it->second.get();
}

void Worker::ReportLimitReached(const verbs::SrqConfig& srq) {
  Notify({0, AsyncEventRaised{.session = srq.session,
                              .event = verbs::AsyncEvent::kSrqLimitReached,
                              .kind = ROCEGW_OBJECT_SRQ,
                              .handle = srq.srq_handle,
                              .cookie = srq.cookie,
                              .qpn = {}}});
}

transport::XrcDomain* Worker::DomainOf(SessionId domain) {
  WorkerSession* const session = SessionOf(domain);
  return session == nullptr ? nullptr : session->domain.get();
}

ControlReply Worker::Do(const LinkSrq& body) {
  WorkerSession* const session = SessionOf(body.config.session);
  if (session == nullptr) return Failed(ENOENT);
  if (session->srqs.contains(body.config.srq_handle)) return Failed(EEXIST);
  auto srq = std::make_unique<transport::SharedReceives>(body.config);
  if (body.config.domain.value != 0) {
    transport::XrcDomain* const domain = DomainOf(body.config.domain);
    verbs::CompletionQueue* const cq = CqOf(body.config.session, body.config.cq);
    if (domain == nullptr || cq == nullptr) return Failed(EINVAL);
    if (!domain->Add({srq.get(), cq, session})) return Failed(EEXIST);
  }
  session->srqs.emplace(body.config.srq_handle, std::move(srq));
  return {};
}

// Removes a shared receive queue. Queue pairs made with it were unlinked before; those of an XRC
// domain continue without it.
ControlReply Worker::Do(const UnlinkSrq& body) {
  const transport::SharedReceives* const srq = SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  if (transport::XrcDomain* const domain = DomainOf(srq->config().domain))
    domain->Remove(srq->config().number);
  SessionOf(body.session)->srqs.erase(body.srq_handle);
  return {};
}

ControlReply Worker::Do(const ArmSrq& body) {
  transport::SharedReceives* const srq = SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  srq->Arm(body.limit);
  if (srq->TakeLimitEvent()) ReportLimitReached(srq->config());
  return {};
}

ControlReply Worker::Do(const ResizeSrq& body) {
  transport::SharedReceives* const srq = SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  srq->Grow(body.entries, body.order, body.slots);
  return {};
}

ControlReply Worker::Do(const QuerySrq& body) {
  const transport::SharedReceives* const srq = SrqOf(body.session, body.srq_handle);
  if (srq == nullptr) return Failed(ENOENT);
  ControlReply reply;
  reply.srq_limit = srq->limit();
  return reply;
}

ControlReply Worker::Do(const SnapshotSrqs&) {
  ControlReply reply;
  for (const auto& [id, session] : sessions_) {
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
