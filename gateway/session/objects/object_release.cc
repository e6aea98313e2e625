// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/objects/object_release.h"

#include <utility>

#include "gateway/session/client_memory.h"
#include "gateway/session/events/async_events.h"
#include "gateway/session/events/doorbells.h"
#include "gateway/session/objects/session_quota.h"
#include "gateway/session/reserve/ready_reserve.h"
#include "gateway/session/services.h"
#include "gateway/session/session_segment.h"
#include "gateway/session/state/captures.h"

namespace rocegw::session {

bool ObjectRelease::LetGoOfTarget(uint32_t handle) {
  Qp& qp = *to_.objects.qps.Find(handle);
  auto& targets = to_.objects.xrcds.Find(qp.xrcd)->domain->targets;
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

void ObjectRelease::DropQp(uint32_t handle, std::function<void(uint32_t events)> done) {
  const Qp& qp = *to_.objects.qps.Find(handle);
  auto forget = [this, handle, context = qp.context, done = std::move(done)] {
    const uint32_t events = to_.async_events.Forget(context, ROCEGW_OBJECT_QP, handle);
    FreeQp(handle);
    done(events);
  };
  if (qp.xrcd != 0 && !LetGoOfTarget(handle)) return forget();
  to_.services.workers.Send(
      qp.worker, worker::UnlinkQp{to_.objects.LinkedAs(id_, qp), qp.qpn},
      [forget = std::move(forget)](const worker::ControlReply&) { forget(); });
}

void ObjectRelease::LeaveXrcd(Xrcd& xrcd, std::function<void()> done) {
  // A domain that could not be read has no session.
  if (xrcd.domain == nullptr || std::exchange(xrcd.left, true)) return done();
  xrcd.last = to_.services.xrc.Close(*xrcd.domain);
  if (xrcd.last == nullptr) return done();
  to_.services.workers.Send(xrcd.domain->worker, worker::UnlinkSession{xrcd.domain->id},
                            [done = std::move(done)](const worker::ControlReply&) { done(); });
}

void ObjectRelease::FreeXrcd(uint32_t handle) {
  to_.objects.xrcds.Remove(handle);
  to_.quota.Give(Resource::kPds);
}

void ObjectRelease::FreeQp(uint32_t handle) {
  const auto qp = to_.objects.qps.Remove(handle);
  const uint32_t* const known = to_.objects.qp_by_number.Find(qp->qpn.value);
  if (known != nullptr && *known == handle) to_.objects.qp_by_number.Erase(qp->qpn.value);
  if (qp->xrcd != 0) {
    --to_.objects.xrcds.Find(qp->xrcd)->users;
    to_.quota.Give(Resource::kQps);
    if (qp->last == nullptr) return;
    to_.captures.QpRemoved(to_.quota.pool().name(), qp->qpn);
    to_.services.qpns.Give(qp->qpn, ControlLoop::Now());
    return;
  }
  for (shm::Block* block :
       {&qp->control, &qp->status, &qp->sq, &qp->sq_payload, &qp->rq, &qp->rq_payload}) {
    to_.segment.Free(*block);
  }
  to_.doorbells.Give(qp->worker, {qp->doorbell_page, qp->doorbell_bit});
  to_.captures.QpRemoved(to_.quota.pool().name(), qp->qpn);
  to_.services.qpns.Give(qp->qpn, ControlLoop::Now());
  to_.quota.Give(Resource::kQps);
  --to_.objects.pds.Find(qp->pd)->users;
  if (EndpointGroup* const group = to_.objects.groups.Find(qp->group)) --group->users;
  --to_.objects.cqs.Find(qp->send_cq)->users;
  --to_.objects.cqs.Find(qp->recv_cq)->users;
  if (Srq* const srq = to_.objects.srqs.Find(qp->srq)) --srq->users;
}

void ObjectRelease::FreeSrq(uint32_t handle) {
  const auto srq = to_.objects.srqs.Remove(handle);
  for (shm::Block* block : {&srq->control, &srq->order, &srq->slots, &srq->payload})
    to_.segment.Free(*block);
  if (Xrcd* const xrcd = to_.objects.xrcds.Find(srq->xrcd)) {
    to_.services.xrc.GiveNumber(srq->number);
    --xrcd->users;
    --to_.objects.cqs.Find(srq->cq)->users;
  }
  to_.quota.Give(Resource::kSrqs);
  --to_.objects.pds.Find(srq->pd)->users;
}

void ObjectRelease::FreeCq(uint32_t handle) {
  const auto cq = to_.objects.cqs.Remove(handle);
  to_.segment.Free(cq->control);
  to_.segment.Free(cq->rings);
  to_.quota.Give(Resource::kCqs);
  if (CompletionChannel* const channel = to_.objects.channels.Find(cq->channel)) --channel->users;
}

void ObjectRelease::FreeMr(uint32_t handle) {
  const auto mr = to_.objects.mrs.Remove(handle);
  to_.services.keys.Give(mr->key);
  to_.quota.Give(Resource::kMrs);
  to_.quota.Give(Resource::kRegisteredBytes, mr->charged);
  --to_.objects.pds.Find(mr->pd)->users;
  if (RemappedRegion* const region = to_.objects.regions.Find(mr->region)) --region->users;
}

void ObjectRelease::FreeMw(uint32_t handle) {
  const auto mw = to_.objects.mws.Remove(handle);
  to_.services.keys.GiveFromWindow(mw->key);
  to_.quota.Give(Resource::kMrs);
  --to_.objects.pds.Find(mw->pd)->users;
}

void ObjectRelease::FreePeer(uint32_t handle) {
  const auto peer = to_.objects.peers.Remove(handle);
  to_.quota.Give(Resource::kAhs);
  --to_.objects.pds.Find(peer->pd)->users;
}

void ObjectRelease::FreeGroup(uint32_t handle) {
  const auto group = to_.objects.groups.Remove(handle);
  to_.services.qpns.Give(group->number, ControlLoop::Now());
  to_.quota.Give(Resource::kQps);
  --to_.objects.pds.Find(group->pd)->users;
}

void ObjectRelease::FreePd(uint32_t handle) {
  to_.objects.pds.Remove(handle);
  to_.quota.Give(Resource::kPds);
}

void ObjectRelease::FreeRegion(uint32_t handle) {
  const auto region = to_.objects.regions.Remove(handle);
  if (region->device != nullptr) to_.memory.RemoveDevice(*region->device);
  to_.services.heap.Destroyed(1);
  to_.memory.RemoveRegion(handle);
}

// A worker handles its messages in order, so nothing waits for answers here: a QP is unlinked
// before its queues, and all objects before the session.
void ObjectRelease::UnlinkObjectsOf(uint32_t context, const Join& join) {
  const auto belongs = [context](const auto& object) {
    return context == 0 || object.context == context;
  };
  const auto answered = [join](const worker::ControlReply&) {};
  std::erase_if(to_.objects.multicast, [&](const auto& attachment) {
    const Qp& qp = *to_.objects.qps.Find(attachment.first);
    if (!belongs(qp)) return false;
    const uint32_t device = to_.objects.DeviceOf(qp);
    to_.services.multicast.Remove({to_.quota.pool().id(), device, attachment.second});
    to_.services.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::Multicast{id_, device, attachment.second, qp.qpn, false};
        },
        answered);
    return true;
  });
  to_.objects.qps.ForEach([&](uint32_t handle, const Qp& qp) {
    if (belongs(qp) && (qp.xrcd == 0 || LetGoOfTarget(handle)))
      to_.services.workers.Send(qp.worker, worker::UnlinkQp{to_.objects.LinkedAs(id_, qp), qp.qpn},
                                answered);
  });
  to_.objects.srqs.ForEach([&](uint32_t handle, const Srq& srq) {
    if (belongs(srq))
      to_.services.workers.Send(srq.worker, worker::UnlinkSrq{id_, handle}, answered);
  });
  to_.objects.xrcds.ForEach([&](uint32_t, Xrcd& xrcd) {
    if (belongs(xrcd)) LeaveXrcd(xrcd, [join] {});
  });
  to_.objects.cqs.ForEach([&](uint32_t handle, const Cq& cq) {
    if (!belongs(cq)) return;
    to_.services.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkCq{id_, handle};
        },
        answered);
  });
  to_.objects.groups.ForEach([&](uint32_t, const EndpointGroup& group) {
    if (belongs(group)) {
      to_.services.workers.Send(group.worker, worker::UnlinkGroup{id_, group.number}, answered);
    }
  });
  to_.objects.peers.ForEach([&](uint32_t handle, const EndpointPeer& peer) {
    if (!belongs(peer)) return;
    to_.services.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkPeer{id_, handle};
        },
        answered);
  });
  to_.objects.mws.ForEach([&](uint32_t, const Mw& mw) {
    if (!belongs(mw)) return;
    to_.services.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkWindow{id_, verbs::MemoryWindow::NameOf(mw.key)};
        },
        answered);
  });
  to_.objects.mrs.ForEach([&](uint32_t, const Mr& mr) {
    if (!belongs(mr)) return;
    to_.services.workers.Broadcast(
        [&](WorkerIndex) {
          return worker::UnlinkRegion{id_, mr.key};
        },
        answered);
  });
}

void ObjectRelease::FreeObjectsOf(uint32_t context) {
  const auto belongs = [context](const auto& object) {
    return context == 0 || object.context == context;
  };
  for (const uint32_t qp : to_.objects.qps.Select(belongs)) FreeQp(qp);
  for (const uint32_t srq : to_.objects.srqs.Select(belongs)) FreeSrq(srq);
  for (const uint32_t xrcd : to_.objects.xrcds.Select(belongs)) FreeXrcd(xrcd);
  // Windows are unbound from their regions.
  for (const uint32_t mw : to_.objects.mws.Select(belongs)) FreeMw(mw);
  for (const uint32_t mr : to_.objects.mrs.Select(belongs)) FreeMr(mr);
  for (const uint32_t peer : to_.objects.peers.Select(belongs)) FreePeer(peer);
  for (const uint32_t group : to_.objects.groups.Select(belongs)) FreeGroup(group);
  for (const uint32_t cq : to_.objects.cqs.Select(belongs)) FreeCq(cq);
  for (const uint32_t pd : to_.objects.pds.Select(belongs)) FreePd(pd);
  for (const uint32_t channel : to_.objects.channels.Select(belongs)) {
    to_.objects.channels.Remove(channel);
  }
  const auto any = [](const Context&) { return true; };
  for (const uint32_t c : to_.objects.contexts.Select(any)) {
    if (context == 0 || context == c) to_.objects.contexts.Remove(c);
  }
}

void ObjectRelease::CloseContext(uint32_t context, std::function<void()> done) {
  UnlinkObjectsOf(context, JoinThen([this, context, done = std::move(done)] {
                    FreeObjectsOf(context);
                    done();
                  }));
}

void ObjectRelease::FreeCmId(std::unique_ptr<CmId> id) {
  if (id->listens) to_.quota.Give(Resource::kListeners);
  to_.quota.Give(Resource::kCmIds);
  if (to_.reserve != nullptr) to_.reserve->PutBack(std::move(id));
}

void ObjectRelease::DropCmIds() {
  const auto any = [](const auto&) { return true; };
  for (const uint32_t id : to_.objects.cm_ids.Select(any)) {
    auto dropped = to_.objects.cm_ids.Remove(id);
    FreeCmId(std::move(dropped));
  }
  to_.objects.cm_id_by_qpn = {};
  for (const uint32_t channel : to_.objects.cm_channels.Select(any)) {
    to_.objects.cm_channels.Remove(channel);
  }
}

void ObjectRelease::FreeAll() {
  FreeObjectsOf(0);
  for (const uint32_t handle :
       to_.objects.regions.Select([](const RemappedRegion&) { return true; })) {
    const std::unique_ptr<RemappedRegion> region = to_.objects.regions.Remove(handle);
    if (region->device != nullptr) to_.memory.RemoveDevice(*region->device);
    // A copier that client memory blocks keeps the mapping.
    for (tenant::Charge& charge : region->charges) to_.memory.ReleaseWithCopier(charge);
  }
  to_.quota.Give(Resource::kAhs, std::exchange(to_.objects.ahs, 0));
}

}  // namespace rocegw::session
