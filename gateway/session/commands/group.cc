// SPDX-License-Identifier: Apache-2.0
// Commands on groups of endpoints: a group has a QPN, which leads to one worker with all its
// members.
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/objects/session_costs.h"

namespace rocegw::session {
namespace {

rocegw_group_reply Describe(uint32_t handle, Qpn number) {
  rocegw_group_reply reply{};
  reply.handle = handle;
  reply.number = number.value;
  return reply;
}

}  // namespace

void CreateGroup(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_create_group>();
  Pd* const pd = session.objects().pds.Find(asked.pd);
  const Srq* const srq = session.objects().srqs.Find(asked.srq);
  if (pd == nullptr || asked.dispatch > ROCEGW_DISPATCH_DEPTH ||
      (asked.srq != 0 && (srq == nullptr || srq->context != pd->context || srq->xrcd != 0)))
    return session.exchange().Error(EINVAL);
  if (const int error = session.rules().CheckDrain(session.pool(), "group"))
    return session.exchange().Error(error);
  // A group has a QPN, so it counts as a queue pair.
  if (const int error = session.quota().Take(Resource::kQps))
    return session.exchange().Error(error);
  tenant::Charge heap;
  if (const int error = session.quota().Take(Resource::kHeapBytes, kHeapOfGroup, heap)) {
    session.quota().Give(Resource::kQps);
    return session.exchange().Error(error);
  }
  // Members that take receives from the queue are on its worker.
  std::optional<WorkerIndex> on;
  if (srq != nullptr) on = srq->worker;
  const auto taken = session.worker_choice().TakeQpn(on);
  if (!taken) {
    session.quota().Give(Resource::kQps);
    return session.exchange().Error(ENOMEM);
  }
  auto group = std::make_unique<EndpointGroup>();
  group->context = pd->context;
  group->pd = asked.pd;
  group->number = taken->qpn;
  group->worker = taken->worker;
  group->key = asked.key;
  group->heap = std::move(heap);
  group->dispatch = static_cast<verbs::Dispatch>(asked.dispatch);
  ++pd->users;
  const worker::LinkGroup link{{session.id(), group->number, group->dispatch}};
  const uint32_t handle = session.objects().groups.Add(std::move(group));
  session.workers().Send(
      taken->worker, link,
      [&session, handle, number = taken->qpn](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.exchange().Reply(Describe(handle, number));
        session.release().FreeGroup(handle);
        session.exchange().Error(linked.error);
      });
}

void DestroyGroup(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  const EndpointGroup* const group = session.objects().groups.Find(handle);
  if (group == nullptr) return session.exchange().Error(EINVAL);
  if (group->users != 0) return session.exchange().Error(EBUSY);
  session.workers().Send(group->worker, worker::UnlinkGroup{session.id(), group->number},
                         [&session, handle](const worker::ControlReply&) {
                           session.release().FreeGroup(handle);
                           session.exchange().Done();
                         });
}

}  // namespace rocegw::session
