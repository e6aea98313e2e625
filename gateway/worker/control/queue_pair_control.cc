// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/control/queue_pair_control.h"

#include <cerrno>
#include <map>

#include "gateway/transport/endpoint/endpoint_queue_pair.h"

namespace rocegw::worker {

// Objects that a new queue pair refers to.
struct QueuePairControl::Parts {
  WorkerSession* session = nullptr;
  verbs::CompletionQueue* send_cq = nullptr;
  verbs::CompletionQueue* recv_cq = nullptr;
  transport::SharedReceives* srq = nullptr;
  transport::EndpointGroup* group = nullptr;
  // XRC receiving queue pairs have no queues of their own; each message selects them.
  bool queueless = false;
};

namespace {

QpSnapshot SnapshotOf(transport::QueuePair& qp) {
  const transport::QpContext& context = qp.context();
  const transport::QueuePair::Psns psns = qp.psns();
  QpSnapshot snapshot{
      .session = context.config.session,
      .qp_handle = context.config.qp_handle,
      .qpn = context.config.qpn,
      .type = context.config.type,
      .attributes = context.attributes,
      .next_send_psn = psns.next,
      .oldest_unacked_psn = psns.una,
      .expected_psn = psns.expected,
      .send_outstanding = qp.outstanding(),
      .sends_completed = context.sends_completed(),
      .receives_completed = context.receives_completed(),
      .bytes_sent = context.bytes_sent(),
      .bytes_received = context.bytes_received(),
      .retransmits = context.retransmits,
      .on_channel = context.carrier != nullptr,
      .fetch_operates = context.carrier != nullptr && context.peer_operates,
      .endpoint = {},
      .channel = context.carrier != nullptr ? context.carrier->number() : kInvalidQpn,
      .beside = {},
      .declined = context.declined};
  snapshot.attributes.sq_draining = qp.draining();
  if (const transport::EndpointQueuePair* const endpoint = qp.endpoint())
    snapshot.endpoint = endpoint->status();
  if (context.multipath != nullptr) snapshot.beside = context.multipath->Numbers();
  return snapshot;
}

}  // namespace

QpSlot* QueuePairControl::Find(SessionId session, Qpn qpn) {
  QpSlot* const slot = uses_.qps.Find(qpn);
  const bool theirs = slot != nullptr && slot->qp->context().config.session == session;
  return theirs ? slot : nullptr;
}

ControlReply QueuePairControl::Do(const PrepareQp& body) {
  if (uses_.qps.HandleOf(body.qpn) != nullptr) return Failed(EEXIST);
  const SlotHandle handle = uses_.qps.Add(body.qpn);
  QpSlot& slot = uses_.qps.slots()[handle.index];
  slot.qp = transport::MakeReadyQueuePair(body.shape);
  slot.qp->context().handle = handle;
  // Space for its first events, so that they allocate nothing.
  uses_.scheduler.Reserve(uses_.qps.slots().size());
  return {};
}

std::unique_ptr<transport::QueuePair> QueuePairControl::Make(const verbs::QpConfig& config) {
  switch (config.type) {
    case verbs::QpType::kUd:
      return transport::MakeUdQueuePair(config);
    case verbs::QpType::kUc:
      return transport::MakeUcQueuePair(config);
    case verbs::QpType::kEndpoint:
      return transport::MakeEndpoint(config);
    case verbs::QpType::kXrcReceive:
      return transport::MakeXrcTarget(config, uses_.congestion.ConfigOf(config),
                                      *uses_.sessions.DomainOf(config.session));
    case verbs::QpType::kRc:
    case verbs::QpType::kXrcSend:
      break;
  }
  return transport::MakeRcQueuePair(config, uses_.congestion.ConfigOf(config));
}

// Finds what the configuration names. Returns 0 or an errno.
int QueuePairControl::FindParts(const verbs::QpConfig& config, Parts& parts) {
  const SessionTable& sessions = uses_.sessions;
  parts.session = sessions.Find(config.session);
  if (parts.session == nullptr) return ENOENT;
  parts.queueless = config.type == verbs::QpType::kXrcReceive;
  if (parts.queueless != (parts.session->domain != nullptr)) return EINVAL;
  if (config.device >= uses_.ports.size()) return EINVAL;
  parts.send_cq = sessions.CqOf(config.session, config.send_cq);
  parts.recv_cq = sessions.CqOf(config.session, config.recv_cq);
  const bool bell = config.doorbell_page < parts.session->pages.size() &&
                    config.doorbell_bit < ROCEGW_DOORBELL_BITS;
  const bool complete = parts.send_cq != nullptr && parts.recv_cq != nullptr && bell;
  if (!parts.queueless && !complete) return EINVAL;
  parts.srq = sessions.SrqOf(config.session, config.srq);
  if (config.srq != 0 && parts.srq == nullptr) return EINVAL;
  parts.group = uses_.groups.Of(config.session, config.group);
  if (config.group != kInvalidQpn && parts.group == nullptr) return EINVAL;
  return 0;
}

ControlReply QueuePairControl::Do(const LinkQp& body) {
  const verbs::QpConfig& config = body.config;
  Parts parts;
  if (const int error = FindParts(config, parts); error != 0) return Failed(error);
  SlotHandle handle;
  if (const SlotHandle* const ready = uses_.qps.HandleOf(config.qpn)) {
    handle = *ready;
    QpSlot& slot = uses_.qps.slots()[handle.index];
    if (slot.session != nullptr) return Failed(EEXIST);
    slot.qp->Adopt(config, uses_.congestion.ConfigOf(config));
  } else {
    handle = uses_.qps.Add(config.qpn);
    uses_.qps.slots()[handle.index].qp = Make(config);
  }
  WorkerSession& session = *parts.session;
  QpSlot& slot = uses_.qps.slots()[handle.index];
  slot.session = &session;
  slot.runnable = false;
  slot.bytes_left = 0;
  slot.armed = slot.deadline = kNever;
  transport::QpContext& context = slot.qp->context();
  context.handle = handle;
  context.send_cq = parts.send_cq;
  context.recv_cq = parts.recv_cq;
  context.TakeReceivesFrom(parts.srq);
  context.worker = &uses_.tables;
  context.owner = session.index;
  context.peers = &session.peers;
  context.wait_entry = {};
  if (!parts.queueless) session.pages[config.doorbell_page].by_bit[config.doorbell_bit] = handle;
  transport::EndpointQueuePair* const endpoint = slot.qp->endpoint();
  if (parts.group != nullptr && endpoint != nullptr) parts.group->Join(*endpoint);
  if (endpoint != nullptr) uses_.bindings.references().AddEndpoint(session.link.share);
  return {};
}

ControlReply QueuePairControl::Do(const UnlinkQp& body) {
  QpSlot* const slot = Find(body.session, body.qpn);
  if (slot == nullptr) return Failed(ENOENT);
  const transport::QpContext& context = slot->qp->context();
  WorkerSession* const session = slot->session;
  if (session != nullptr && session->domain == nullptr)
    session->pages[context.rare.doorbell_page].by_bit[context.rare.doorbell_bit] = SlotHandle{};
  if (session != nullptr && !session->failed) slot->qp->SendLast(uses_.outbox, uses_.round.now);
  if (context.srq != nullptr || context.config.type == verbs::QpType::kXrcReceive)
    slot->qp->GiveBackReceives();
  const transport::EndpointQueuePair* const endpoint = slot->qp->endpoint();
  if (endpoint != nullptr) {
    if (transport::EndpointGroup* const group = uses_.groups.Of(body.session, context.rare.group))
      group->Leave(*endpoint, uses_.round.now);
    const tenant::Share* const pool = session == nullptr ? nullptr : session->link.share;
    uses_.tombstones.Keep(*endpoint, pool, uses_.round.now);
  }
  if (session != nullptr) {
    uses_.bindings.EndAll(*slot);
    RecordHeap::Remove(*slot);
  }
  if (endpoint != nullptr) uses_.bindings.references().RemoveEndpoint(session->link.share);
  uses_.qps.Remove(body.qpn, *slot);
  return {};
}

ControlReply QueuePairControl::Do(const ModifyQp& body) {
  QpSlot* const slot = Find(body.session, body.qpn);
  if (slot == nullptr) return Failed(ENOENT);
  const transport::QpContext& context = slot->qp->context();
  const ChannelBindings::Slots before = uses_.bindings.SlotsOf(context);
  const int error = slot->qp->Modify(uses_.outbox, body.mask, body.attributes, uses_.round.now);
  uses_.bindings.EndUnused(*slot, before);
  if (error == 0 && body.channel.has_value() && context.state() == verbs::QpState::kRtr &&
      context.config.type == verbs::QpType::kRc) {
    uses_.bindings.Bind(*slot->qp, *body.channel);
  }
  // A host that connects without end sends MADs before it sends anything else.
  if (error == 0 && uses_.flood.watching() && context.state() == verbs::QpState::kRtr)
    uses_.flood.OnPeer(context.attributes.path.destination, uses_.round.now);
  uses_.activity.AfterEvent(*slot, context.handle);
  return Failed(error);
}

ControlReply QueuePairControl::Do(const QueryQp& body) {
  const QpSlot* const slot = Find(body.session, body.qpn);
  if (slot == nullptr) return Failed(ENOENT);
  ControlReply reply;
  reply.qps.push_back(SnapshotOf(*slot->qp));
  return reply;
}

ControlReply QueuePairControl::Do(const MoveEndpoint& body) {
  QpSlot* const slot = Find(body.session, body.qpn);
  transport::EndpointQueuePair* const endpoint = slot == nullptr ? nullptr : slot->qp->endpoint();
  if (endpoint == nullptr) return Failed(EINVAL);
  const ChannelBindings::Slots before = uses_.bindings.SlotsOf(endpoint->context());
  const int error = endpoint->Move(uses_.outbox, body.to, body.notify, uses_.round.now);
  uses_.bindings.EndUnused(*slot, before);
  uses_.activity.AfterEvent(*slot, endpoint->context().handle);
  return Failed(error);
}

ControlReply QueuePairControl::Do(const SnapshotQps& body) {
  ControlReply reply;
  for (const QpSlot& slot : uses_.qps.slots()) {
    if (slot.session == nullptr) continue;
    if (body.session.value != 0 && slot.qp->context().config.session != body.session) continue;
    reply.qps.push_back(SnapshotOf(*slot.qp));
  }
  return reply;
}

// Moves a queue pair that is connected to a forbidden address to the error state. Returns true if
// it was one.
bool QueuePairControl::FailIfForbidden(QpSlot& slot, const verbs::PeerRules* rules) {
  transport::QpContext& qp = slot.qp->context();
  const verbs::QpType type = qp.config.type;
  const bool connected =
      qp.receives() && type != verbs::QpType::kUd && type != verbs::QpType::kEndpoint;
  if (!connected || rules == nullptr || rules->Allow(qp.attributes.path.destination)) return false;
  const SlotHandle handle = qp.handle;
  verbs::QpAttributes failed;
  failed.state = verbs::QpState::kError;
  if (slot.qp->Modify(uses_.outbox, verbs::kAttrState, failed, uses_.round.now) != 0) return false;
  uses_.outbox.Event(qp, verbs::AsyncEvent::kQpFatal);
  uses_.activity.AfterEvent(slot, handle);
  return true;
}

ControlReply QueuePairControl::Do(const UsePeerRules& body) {
  std::map<wire::Gid, uint32_t> revoked;
  for (QpSlot& slot : uses_.qps.slots()) {
    if (slot.session == nullptr || slot.session->link.share != body.pool) continue;
    transport::QpContext& qp = slot.qp->context();
    qp.rare.peers = body.rules;
    const wire::Gid peer = qp.attributes.path.destination;
    if (FailIfForbidden(slot, body.rules)) ++revoked[peer];
  }
  ControlReply reply;
  for (const auto& [peer, count] : revoked) reply.revoked.push_back({peer, count});
  return reply;
}

ControlReply QueuePairControl::Do(const LinkPeer& body) {
  WorkerSession* const session = uses_.sessions.Find(body.session);
  if (session == nullptr) return Failed(ENOENT);
  if (body.peer.device >= uses_.ports.size()) return Failed(EINVAL);
  return Failed(session->peers.emplace(body.handle, body.peer).second ? 0 : EEXIST);
}

ControlReply QueuePairControl::Do(const UnlinkPeer& body) {
  WorkerSession* const session = uses_.sessions.Find(body.session);
  return Failed(session != nullptr && session->peers.erase(body.handle) != 0 ? 0 : ENOENT);
}

ControlReply QueuePairControl::Do(const LinkGroup& body) {
  const verbs::GroupConfig& config = body.config;
  if (uses_.sessions.Find(config.session) == nullptr) return Failed(ENOENT);
  if (config.number == kInvalidQpn || uses_.qps.HandleOf(config.number) != nullptr)
    return Failed(EEXIST);
  return Failed(uses_.groups.Add(config) ? 0 : EEXIST);
}

ControlReply QueuePairControl::Do(const UnlinkGroup& body) {
  return Failed(uses_.groups.Remove(body.session, body.number) ? 0 : ENOENT);
}

}  // namespace rocegw::worker
