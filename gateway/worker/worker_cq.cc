// SPDX-License-Identifier: Apache-2.0
// Control messages for completion queues. Each worker has its own ring of every queue.
#include <cerrno>

#include "gateway/worker/worker.h"

namespace rocegw::worker {

verbs::CompletionQueue* Worker::CqOf(SessionId session, uint32_t handle) {
  WorkerSession* const owner = SessionOf(session);
  if (owner == nullptr) return nullptr;
  const auto it = owner->cqs.find(handle);
  return it == owner->cqs.end() ? nullptr : it->second.get();
}

ControlReply Worker::Do(const LinkCq& body) {
  WorkerSession* session = SessionOf(body.config.session);
  if (session == nullptr) return Failed(ENOENT);
  auto cq = std::make_unique<verbs::CompletionQueue>(body.config);
  cq->fresh_list = &fresh_;
  cq->owner = session;
  return Failed(session->cqs.emplace(body.config.cq_handle, std::move(cq)).second ? 0 : EEXIST);
}

ControlReply Worker::Do(const UnlinkCq& body) {
  WorkerSession* session = SessionOf(body.session);
  if (session == nullptr) return Failed(ENOENT);
  const auto it = session->cqs.find(body.cq_handle);
  if (it == session->cqs.end()) return Failed(ENOENT);
  std::erase(fresh_, it->second.get());
  std::erase(timed_, it->second.get());
  std::erase(unsent_, it->second.get());
  ControlReply reply;
  reply.events_reported = it->second->events_sent;
  session->cqs.erase(it);
  return reply;
}

ControlReply Worker::Do(const ResizeCq& body) {
  verbs::CompletionQueue* const cq = CqOf(body.session, body.cq_handle);
  if (cq == nullptr) return Failed(ENOENT);
  return Failed(cq->Resize(body.ring, body.entries, body.most) ? 0 : ENOSPC);
}

ControlReply Worker::Do(const ModerateCq& body) {
  verbs::CompletionQueue* const cq = CqOf(body.session, body.cq_handle);
  if (cq == nullptr) return Failed(ENOENT);
  cq->Moderate(*body.moderation, body.count, body.period);
  // An event that was deferred by the old settings may be due now.
  SendEventIfDue(*cq);
  return {};
}

}  // namespace rocegw::worker
