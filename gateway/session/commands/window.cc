// SPDX-License-Identifier: Apache-2.0
// Commands on memory windows. A window counts as a region; the data path binds it.
#include <cerrno>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"

namespace rocegw::session {
namespace {

void DropMw(ClientSession& session, uint32_t handle, std::function<void()> done) {
  const uint32_t name = verbs::MemoryWindow::NameOf(session.objects().mws.Find(handle)->key);
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::UnlinkWindow{session.id(), name};
      },
      [&session, handle, done = std::move(done)](const worker::ControlReply&) {
        session.release().FreeMw(handle);
        done();
      });
}

}  // namespace

void AllocMw(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_alloc_mw>();
  Pd* const pd = session.objects().pds.Find(asked.pd);
  const bool first = asked.type == static_cast<uint32_t>(verbs::MwType::kType1);
  const bool second = asked.type == static_cast<uint32_t>(verbs::MwType::kType2);
  if (pd == nullptr || (!first && !second)) return session.exchange().Error(EINVAL);
  if (const int error = session.quota().Take(Resource::kMrs))
    return session.exchange().Error(error);
  auto mw = std::make_unique<Mw>();
  mw->context = pd->context;
  mw->pd = asked.pd;
  mw->key = session.keys().TakeForWindow();
  mw->window = std::make_unique<verbs::MemoryWindow>(
      first ? verbs::MwType::kType1 : verbs::MwType::kType2, session.id(), asked.pd, mw->key);
  ++pd->users;

  const uint32_t name = verbs::MemoryWindow::NameOf(mw->key);
  verbs::MemoryWindow* const window = mw->window.get();
  rocegw_mw_reply reply{};
  reply.rkey = mw->key.value;
  reply.handle = session.objects().mws.Add(std::move(mw));
  session.workers().Broadcast(
      [&](WorkerIndex) {
        return worker::LinkWindow{session.id(), name, window};
      },
      [&session, reply](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.exchange().Reply(reply);
        DropMw(session, reply.handle,
               [&session, error = linked.error] { session.exchange().Error(error); });
      });
}

void DeallocMw(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  if (session.objects().mws.Find(handle) == nullptr) return session.exchange().Error(EINVAL);
  DropMw(session, handle, [&session] { session.exchange().Done(); });
}

}  // namespace rocegw::session
