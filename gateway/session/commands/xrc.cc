// SPDX-License-Identifier: Apache-2.0
// Commands on XRC domains, which sessions of a pool share, and their receiving queue pairs. A
// session's objects in a domain are destroyed before the domain; its shared receive queues are in
// srq.cc.
#include <cerrno>
#include <memory>
#include <utility>

#include "gateway/session/client_session.h"
#include "gateway/session/commands/commands.h"
#include "gateway/session/commands/link_configs.h"
#include "gateway/session/state/captures.h"

namespace rocegw::session {
namespace {

// Adds this session to the queue pair's openers and returns its handle.
uint32_t AddOpener(ClientSession& session, uint32_t xrcd, Qpn qpn, uint64_t cookie) {
  Objects& objects = session.objects();
  Xrcd& known = *objects.xrcds.Find(xrcd);
  auto qp = std::make_unique<Qp>();
  qp->context = known.context;
  qp->xrcd = xrcd;
  qp->type = verbs::QpType::kXrcReceive;
  qp->qpn = qpn;
  qp->worker = known.domain->worker;
  qp->cookie = cookie;
  ++known.users;
  const uint32_t handle = objects.qps.Add(std::move(qp));
  objects.qp_by_number.Insert(qpn.value, handle);
  known.domain->targets.at(qpn.value)->openers.push_back({session.id(), handle, cookie});
  return handle;
}

rocegw_qp_reply Describe(const Qp& qp, uint32_t handle) {
  rocegw_qp_reply reply{};
  reply.handle = handle;
  reply.qpn = qp.qpn.value;
  reply.worker = qp.worker;
  return reply;
}

void Open(ClientSession& session, const rocegw_open_xrcd& asked, PassedDescriptor file) {
  const Context* const context = session.objects().contexts.Find(asked.context);
  if (const int error = session.quota().Take(Resource::kPds))
    return session.exchange().Error(error);
  tenant::Charge descriptor;
  if (file.fd.valid()) {
    if (const int error = session.quota().Take(Resource::kDescriptors, 1, descriptor)) {
      session.quota().Give(Resource::kPds);
      return session.exchange().Error(error);
    }
  }
  ClientFd named;
  if (file.fd.valid()) named = ClientFd(std::move(file.fd), session.exchange().call_queue());
  auto opened = session.xrc_domains().Open(
      {&session.pool(), context->device, std::move(named), {file.device, file.inode}, asked.flags},
      session.worker_choice().Next());
  if (!opened.ok()) {
    session.quota().Give(Resource::kPds);
    return session.exchange().Error(opened.status().error());
  }
  auto xrcd = std::make_unique<Xrcd>();
  xrcd->context = asked.context;
  xrcd->domain = opened->domain;
  const uint32_t handle = session.objects().xrcds.Add(std::move(xrcd));
  if (!opened->made) return session.exchange().Object(handle, 0);
  XrcDomain& domain = *opened->domain;
  domain.slot = session.slot();
  domain.descriptor = std::move(descriptor);
  session.workers().Send(
      domain.worker, LinkOf(domain),
      [&session, handle](const worker::ControlReply&) { session.exchange().Object(handle, 0); });
}

}  // namespace

void OpenXrcd(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_open_xrcd>();
  if (session.objects().contexts.Find(asked.context) == nullptr ||
      (asked.flags & ~(ROCEGW_XRCD_CREATE | ROCEGW_XRCD_EXCLUSIVE)) != 0)
    return session.exchange().Error(EINVAL);
  if (asked.named == 0) return Open(session, asked, {});
  session.exchange().TakeDescriptor(request, {PassedKind::kFile},
                                    [&session, asked](PassedDescriptor file) {
                                      if (!file.status.ok())
                                        return session.exchange().Error(file.status.error());
                                      Open(session, asked, std::move(file));
                                    });
}

void CloseXrcd(ClientSession& session, Request& request) {
  const uint32_t handle = request.As<rocegw_object_request>().handle;
  Xrcd* const xrcd = session.objects().xrcds.Find(handle);
  if (xrcd == nullptr) return session.exchange().Error(EINVAL);
  if (xrcd->users != 0) return session.exchange().Error(EBUSY);
  session.release().LeaveXrcd(*xrcd, [&session, handle] {
    session.release().FreeXrcd(handle);
    session.exchange().Object(0, 0);
  });
}

void CreateXrcTarget(ClientSession& session, const rocegw_create_qp& asked) {
  Xrcd* const xrcd = session.objects().xrcds.Find(asked.xrcd);
  if (xrcd == nullptr || asked.srq != 0 || asked.group != 0 || asked.cm_id != 0 ||
      asked.service_mode != 0 || asked.any_completion_order != 0) {
    return session.exchange().Error(EINVAL);
  }
  if (const int error = session.rules().CheckDrain(session.pool(), "queue pair"))
    return session.exchange().Error(error);
  if (const int error = session.quota().Take(Resource::kQps))
    return session.exchange().Error(error);
  XrcDomain& domain = *xrcd->domain;
  const auto taken = session.worker_choice().TakeQpn(domain.worker);
  if (!taken.has_value()) {
    session.quota().Give(Resource::kQps);
    return session.exchange().Error(ENOMEM);
  }
  XrcTarget& target =
      *domain.targets.emplace(taken->qpn.value, std::make_unique<XrcTarget>()).first->second;
  const uint32_t handle = AddOpener(session, asked.xrcd, taken->qpn, asked.cookie);
  const Qp& qp = *session.objects().qps.Find(handle);
  // Before a worker knows the queue pair, so that a capture sees its first packet.
  session.captures().QpAdded(session.pool().name(), qp.qpn);
  session.workers().Send(
      domain.worker, worker::LinkQp{XrcTargetConfigOf(session, qp.qpn, domain, target)},
      [&session, reply = Describe(qp, handle)](const worker::ControlReply& linked) {
        if (linked.error == 0) return session.exchange().Reply(reply);
        session.release().DropQp(reply.handle, [&session, error = linked.error](uint32_t) {
          session.exchange().Error(error);
        });
      });
}

void OpenQp(ClientSession& session, Request& request) {
  const auto asked = request.As<rocegw_open_qp>();
  const Xrcd* const xrcd = session.objects().xrcds.Find(asked.xrcd);
  if (xrcd == nullptr || !xrcd->domain->targets.contains(asked.qpn))
    return session.exchange().Error(EINVAL);
  if (const int error = session.quota().Take(Resource::kQps))
    return session.exchange().Error(error);
  const uint32_t handle = AddOpener(session, asked.xrcd, Qpn{asked.qpn}, asked.cookie);
  session.exchange().Reply(Describe(*session.objects().qps.Find(handle), handle));
}

}  // namespace rocegw::session
