// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/session_control.h"

#include <cerrno>

namespace rocegw::worker {

ControlReply SessionControl::Do(const LinkSession& body) {
  WorkerSession* const session = uses_.sessions.Add(body);
  if (session == nullptr) return Failed(EEXIST);
  session->last_active = uses_.round.now;
  if (body.xrc_domain) session->domain = std::make_unique<transport::XrcDomain>();
  session->account = uses_.scheduler.Open(body.share, body.slot);
  uses_.bindings.references().AddSession(body.share);
  uses_.staged.AddSession(*session);
  uses_.doorbells.AddSession(*session);
  uses_.memory.AddSession(*session);
  uses_.watch.Set(body, true);
  return {};
}

ControlReply SessionControl::Do(const UnlinkSession& body) {
  WorkerSession* const session = uses_.sessions.Find(body.session);
  if (session == nullptr) return Failed(ENOENT);
  uses_.watch.Set(session->link, false);
  uses_.doorbells.RemoveSession(*session);
  uses_.times.Remove(*session);
  uses_.memory.RemoveSession(*session);
  uses_.transmit.Forget(session->account);
  uses_.staged.RemoveSession(*session);
  uses_.scheduler.Close(session->account);
  uses_.bindings.references().RemoveSession(session->link.share);
  uses_.sessions.Remove(*session);
  return {};
}

ControlReply SessionControl::Do(const UseCopier& body) {
  WorkerSession* const session = uses_.sessions.Find(body.session);
  if (session == nullptr) return Failed(ENOENT);
  uses_.memory.UseCopier(*session, *body.copier);
  return {};
}

ControlReply SessionControl::Do(const AddDoorbellPage& body) {
  WorkerSession* const session = uses_.sessions.Find(body.session);
  if (session == nullptr) return Failed(ENOENT);
  if (body.page != session->pages.size()) return Failed(EINVAL);
  session->pages.push_back({body.memory, std::vector<SlotHandle>(ROCEGW_DOORBELL_BITS)});
  return {};
}

}  // namespace rocegw::worker
