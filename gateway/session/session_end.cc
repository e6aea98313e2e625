// SPDX-License-Identifier: Apache-2.0
// Destruction of a session's objects: single ones, those of a context, or all at the end. Memory is
// freed only after every worker that could use it has confirmed that it does not.
#include <memory>
#include <utility>
#include <vector>

#include "gateway/session/client_session.h"
#include "gateway/session/cm/cm_binding.h"
#include "gateway/session/state/captures.h"

namespace rocegw::session {
namespace {

// Returns a handle; `done` runs when all copies of it are destroyed, at once if none was made.
std::shared_ptr<void> JoinThen(std::function<void()> done) {
  return {nullptr, [done = std::move(done)](void*) { done(); }};
}

}  // namespace

bool ClientSession::LetGoOfTarget(uint32_t handle) {
  Qp& qp = *objects_.qps.Find(handle);
  auto& targets = objects_.xrcds.Find(qp.xrcd)->domain->targets;
  const auto target = targets.find(qp.qpn.value);
  // This reference was released before.
  if (target == targets.end()) return false;
  std::erase_if(target->second->openers, [&](const XrcOpener& opener) {
    return opener.session == id_ && opener.handle == handle;
  });
  if (!target->second->openers.empty()) return false;
  qp.last = std::move(target->second);
  targets.erase(target);
  return true;
}

void ClientSession::DropQp(uint32_t handle, std::function<void(uint32_t events)> done) {
  const Qp& qp = *objects_.qps.Find(handle);
  auto forget = [this, handle, context = qp.context, done = std::move(done)] {
    const uint32_t events = ForgetAsyncEvents(context, ROCEGW_OBJECT_QP, handle);
    FreeQp(handle);
    done(events);
  };
  if (qp.xrcd != 0 && !LetGoOfTarget(handle)) return forget();
  services_.workers.Send(qp.worker, worker::UnlinkQp{LinkedAs(qp), qp.qpn},
                         [forget = std::move(forget)](const worker::ControlReply&) { forget(); });
}

void ClientSession::LeaveXrcd(Xrcd& xrcd, std::function<void()> done) {
  if (std::exchange(xrcd.left, true)) return done();
  xrcd.last = services_.xrc.Close(*xrcd.domain);
  if (xrcd.last == nullptr) return done();
  services_.workers.Send(xrcd.domain->worker, worker::UnlinkSession{xrcd.domain->id},
                         [done = std::move(done)](const worker::ControlReply&) { done(); });
}

void ClientSession::FreeXrcd(uint32_t handle) {
  objects_.xrcds.Remove(handle);
  Give(Resource::kPds);
}

void ClientSession::FreeQp(uint32_t handle) {
  const auto qp = objects_.qps.Remove(handle);
  const uint32_t* const known = objects_.qp_by_number.Find(qp->qpn.value);
  if (known != nullptr && *known == handle) objects_.qp_by_number.Erase(qp->qpn.value);
  if (qp->xrcd != 0) {
    --objects_.xrcds.Find(qp->xrcd)->users;
    Give(Resource::kQps);
    if (qp->last == nullptr) return;
    captures_.QpRemoved(pool().name(), qp->qpn);
    services_.qpns.Give(qp->qpn, ControlLoop::Now());
    return;
  }
  for (shm::Block* block :
       {&qp->control, &qp->status, &qp->sq, &qp->sq_payload, &qp->rq, &qp->rq_payload}) {
    segment_.Free(*block);
  }
  doorbells_.Give(qp->worker, {qp->doorbell_page, qp->doorbell_bit});
  captures_.QpRemoved(pool().name(), qp->qpn);
  services_.qpns.Give(qp->qpn, ControlLoop::Now());
  Give(Resource::kQps);
  --objects_.pds.Find(qp->pd)->users;
  if (EndpointGroup* const group = objects_.groups.Find(qp->group)) --group->users;
  --objects_.cqs.Find(qp->send_cq)->users;
  --objects_.cqs.Find(qp->recv_cq)->users;
  if (Srq* const srq = objects_.srqs.Find(qp->srq)) --srq->users;
}

void ClientSession::FreeSrq(uint32_t handle) {
  const auto srq = objects_.srqs.Remove(handle);
  for (shm::Block* block : {&srq->control, &srq->order, &srq->slots, &srq->payload})
    segment_.Free(*block);
  if (Xrcd* const xrcd = objects_.xrcds.Find(srq->xrcd)) {
    services_.xrc.GiveNumber(srq->number);
    --xrcd->users;
    --objects_.cqs.Find(srq->cq)->users;
  }
  Give(Resource::kSrqs);
  --objects_.pds.Find(srq->pd)->users;
}

void ClientSession::FreeCq(uint32_t handle) {
  const auto cq = objects_.cqs.Remove(handle);
  segment_.Free(cq->control);
  segment_.Free(cq->rings);
  Give(Resource::kCqs);
  if (CompletionChannel* const channel = objects_.channels.Find(cq->channel)) --channel->users;
}

void ClientSession::FreeMr(uint32_t handle) {
  const auto mr = objects_.mrs.Remove(handle);
  services_.keys.Give(mr->key);
  Give(Resource::kMrs);
  Give(Resource::kRegisteredBytes, mr->charged);
  --objects_.pds.Find(mr->pd)->users;
  if (RemappedRegion* const region = objects_.regions.Find(mr->region)) --region->users;
}

void ClientSession::FreeMw(uint32_t handle) {
  const auto mw = objects_.mws.Remove(handle);
  services_.keys.GiveFromWindow(mw->key);
  Give(Resource::kMrs);
  --objects_.pds.Find(mw->pd)->users;
}

void ClientSession::FreePeer(uint32_t handle) {
  const auto peer = objects_.peers.Remove(handle);
  Give(Resource::kAhs);
  --objects_.pds.Find(peer->pd)->users;
}

void ClientSession::FreeGroup(uint32_t handle) {
  const auto group = objects_.groups.Remove(handle);
  services_.qpns.Give(group->number, ControlLoop::Now());
  Give(Resource::kQps);
  --objects_.pds.Find(group->pd)->users;
}

void ClientSession::FreePd(uint32_t handle) {
  objects_.pds.Remove(handle);
  Give(Resource::kPds);
}

void ClientSession::FreeRegion(uint32_t handle) {
  const auto region = objects_.regions.Remove(handle);
  if (region->device != nullptr) memory_.RemoveDevice(*region->device);
  services_.heap.Destroyed(1);
  memory_.RemoveRegion(handle);
}

// A worker handles its messages in order, so nothing waits for answers here: a QP is unlinked
// before its queues, and all objects before the session.
void ClientSession::UnlinkObjectsOf(uint32_t context, const Join& join) {
  const auto belongs = [context](const auto& object) {
    return context == 0 || object.context == context;
  };
  const auto answered = [join](const worker::ControlReply&) {};
  std::erase_if(objects_.multicast, [&](const auto& attachment) {
    const Qp& qp = *objects_.qps.Find(attachment.first);
    if (!belongs(qp)) return false;
    const uint32_t device = DeviceOf(qp);
    services_.multicast.Remove({pool_.id(), device, attachment.second});
    services_.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::Multicast{id_, device, attachment.second, qp.qpn, false};
        },
        answered);
    return true;
  });
  objects_.qps.ForEach([&](uint32_t handle, const Qp& qp) {
    if (belongs(qp) && (qp.xrcd == 0 || LetGoOfTarget(handle)))
      services_.workers.Send(qp.worker, worker::UnlinkQp{LinkedAs(qp), qp.qpn}, answered);
  });
  objects_.srqs.ForEach([&](uint32_t handle, const Srq& srq) {
    if (belongs(srq)) services_.workers.Send(srq.worker, worker::UnlinkSrq{id_, handle}, answered);
  });
  objects_.xrcds.ForEach([&](uint32_t, Xrcd& xrcd) {
    if (belongs(xrcd)) LeaveXrcd(xrcd, [join] {});
  });
  objects_.cqs.ForEach([&](uint32_t handle, const Cq& cq) {
    if (!belongs(cq)) return;
    services_.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkCq{id_, handle};
        },
        answered);
  });
  objects_.groups.ForEach([&](uint32_t, const EndpointGroup& group) {
    if (belongs(group)) {
      services_.workers.Send(group.worker, worker::UnlinkGroup{id_, group.number}, answered);
    }
  });
  objects_.peers.ForEach([&](uint32_t handle, const EndpointPeer& peer) {
    if (!belongs(peer)) return;
    services_.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkPeer{id_, handle};
        },
        answered);
  });
  objects_.mws.ForEach([&](uint32_t, const Mw& mw) {
    if (!belongs(mw)) return;
    services_.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkWindow{id_, verbs::MemoryWindow::NameOf(mw.key)};
        },
        answered);
  });
  objects_.mrs.ForEach([&](uint32_t, const Mr& mr) {
    if (!belongs(mr)) return;
    services_.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkRegion{id_, mr.key};
        },
        answered);
  });
}

void ClientSession::FreeObjectsOf(uint32_t context) {
  const auto belongs = [context](const auto& object) {
    return context == 0 || object.context == context;
  };
  for (const uint32_t qp : objects_.qps.Select(belongs)) FreeQp(qp);
  for (const uint32_t srq : objects_.srqs.Select(belongs)) FreeSrq(srq);
  for (const uint32_t xrcd : objects_.xrcds.Select(belongs)) FreeXrcd(xrcd);
  // Windows are unbound from their regions.
  for (const uint32_t mw : objects_.mws.Select(belongs)) FreeMw(mw);
  for (const uint32_t mr : objects_.mrs.Select(belongs)) FreeMr(mr);
  for (const uint32_t peer : objects_.peers.Select(belongs)) FreePeer(peer);
  for (const uint32_t group : objects_.groups.Select(belongs)) FreeGroup(group);
  for (const uint32_t cq : objects_.cqs.Select(belongs)) FreeCq(cq);
  for (const uint32_t pd : objects_.pds.Select(belongs)) FreePd(pd);
  for (const uint32_t channel : objects_.channels.Select(belongs)) {
    objects_.channels.Remove(channel);
  }
  const auto any = [](const Context&) { return true; };
  for (const uint32_t c : objects_.contexts.Select(any)) {
    if (context == 0 || context == c) objects_.contexts.Remove(c);
  }
}

void ClientSession::CloseContext(uint32_t context, std::function<void()> done) {
  UnlinkObjectsOf(context, JoinThen([this, context, done = std::move(done)] {
                    FreeObjectsOf(context);
                    done();
                  }));
}

void ClientSession::End(const std::string& reason) {
  if (ending_) return;
  ending_ = true;
  services_.reports.Say(greeted_ ? Severity::kInfo : Severity::kDebug,
                        "session " + std::to_string(id_.value) + " (" + peer_.comm + ", pid " +
                            std::to_string(peer_.pid) + ") ends: " + reason);
  memory_.Revoke();
  // The program decides when this call returns, so it is abandoned without an answer.
  if (const uint64_t out = std::exchange(blocking_, 0); out != 0) {
    services_.returned_calls->Abandon(out);
    pending_.Drop();
  }
  services_.returned_calls->Abandon(std::exchange(dropping_, 0));
  cm_.DropSession(*this);
  DropCmIds();
  ContinueEnd();
}

void ClientSession::DisconnectAll() {
  std::vector<cm::CmHandle> ids;
  objects_.cm_ids.ForEach([&](uint32_t, const CmId& id) { ids.push_back(id.engine); });
  // Unconnected ids return an error, which is expected.
  for (const cm::CmHandle id : ids) (void)cm_.Run(*this, id, cm::Disconnect{});
  verbs::QpAttributes failed;
  failed.state = verbs::QpState::kError;
  objects_.qps.ForEach([&](uint32_t, Qp& qp) {
    qp.setting_up = false;
    services_.workers.Tell(qp.worker,
                           worker::ModifyQp{LinkedAs(qp), qp.qpn, verbs::kAttrState, failed});
  });
}

void ClientSession::DropCmIds() {
  const auto any = [](const auto&) { return true; };
  for (const uint32_t id : objects_.cm_ids.Select(any)) {
    auto dropped = objects_.cm_ids.Remove(id);
    if (dropped->listens) Give(Resource::kListeners);
    Give(Resource::kCmIds);
    GiveBack(std::move(dropped));
  }
  objects_.cm_id_by_qpn = {};
  for (const uint32_t channel : objects_.cm_channels.Select(any)) {
    objects_.cm_channels.Remove(channel);
  }
}

void ClientSession::Violation(const std::string& reason) {
  pending_.Drop();
  End(reason);
}

void ClientSession::ContinueEnd() {
  const Join join = JoinThen([this] {
    segment().Abandon();
    FreeObjectsOf(0);
    FreeAll();
  });
  // Its continuations may still use objects, and its messages are answered before the ones below.
  if (busy()) end_waits_for_pending_ = join;
  UnlinkObjectsOf(0, join);
  // Sent without waiting for the regions: a worker that waits for a blocked copier answers both
  // with this message.
  if (linked_) {
    services_.workers.Broadcast([this](WorkerIndex) { return worker::UnlinkSession{id_}; },
                                [join](const worker::ControlReply&) {});
  }
}

void ClientSession::FreeAll() {
  linked_ = false;
  for (const uint32_t handle :
       objects_.regions.Select([](const RemappedRegion&) { return true; })) {
    const std::unique_ptr<RemappedRegion> region = objects_.regions.Remove(handle);
    if (region->device != nullptr) memory_.RemoveDevice(*region->device);
    // A copier that client memory blocks keeps the mapping.
    for (tenant::Charge& charge : region->charges) memory_.ReleaseWithCopier(charge);
  }
  memory_.Release();
  wake_fds_.clear();
  segment_.Release();
  Give(Resource::kAhs, std::exchange(objects_.ahs, 0));
  ended_ = true;
  if (on_ended) on_ended();
}

}  // namespace rocegw::session
