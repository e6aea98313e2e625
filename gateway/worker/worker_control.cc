// SPDX-License-Identifier: Apache-2.0
// Control messages: applied between bursts, answered when the worker no longer uses the object.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gateway/wire/codec.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {
namespace {

constexpr size_t kMessagesPerIteration = 64;

// Returns the session that the message concerns; 0: none.
SessionId SessionIn(const ControlMessage& message) {
  return std::visit(
      [](const auto& body) -> SessionId {
        if constexpr (requires { body.session; }) return body.session;
        if constexpr (requires { body.config.session; }) return body.config.session;
        return {};
      },
      message.body);
}

}  // namespace

bool Worker::ApplyControl(TimePoint now) {
  bool busy = false;
  while (!unsent_messages_.empty() &&
         options_.link->to_control.Push(std::move(unsent_messages_.front()))) {
    unsent_messages_.pop_front();
    busy = wake_control_ = true;
  }
  ControlMessage message;
  scheduler_.Mark();
  for (size_t i = 0; i < kMessagesPerIteration && options_.link->to_worker.Pop(message); ++i) {
    counters_.control_messages_messages.Add();
    const SessionId from = SessionIn(message);
    Apply(message, now);
    busy = true;
    const WorkerSession* session = SessionOf(from);
    if (session == nullptr) continue;
    scheduler_.ChargeTo(*session->account);
    // The remaining messages, of any session, wait for the next iteration.
    if (!options_.link->to_worker.empty() && scheduler_.InDebt(*session->account)) {
      scheduler_.Wait(*session->account);
      break;
    }
  }
  WakeControl();
  return busy;
}

void Worker::WakeControl() {
  if (!wake_control_) return;
  wake_control_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (options_.link->control_awake.load(std::memory_order_relaxed)) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(options_.link->control_wake_fd, &one, sizeof one);
}

void Worker::Notify(WorkerMessage message) {
  if (!unsent_messages_.empty() || !options_.link->to_control.Push(std::move(message))) {
    // A full ring has not moved the message.
    unsent_messages_.push_back(std::move(message));  // NOLINT(bugprone-use-after-move)
  }
  wake_control_ = true;
}

void Worker::Reply(uint64_t cookie, ControlReply reply) {
  if (cookie != 0) Notify({cookie, std::move(reply)});
}

// Replies once no operation can use the unlinked object: operations that were checked against it
// may still be with the copier, or be part of its next batch.
void Worker::ReplyWhenUnused(SessionId session_id, uint64_t cookie, bool known) {
  WorkerSession* session = SessionOf(session_id);
  if (session != nullptr && session->link.copier != nullptr) {
    const uint64_t after = session->batches_submitted + (session->ops.empty() ? 0 : 1);
    if (session->batches_collected < after) {
      session->late_replies.push_back({cookie, after});
      return;
    }
  }
  Reply(cookie, Failed(known ? 0 : ENOENT));
}

void Worker::Apply(ControlMessage& message, TimePoint now) {
  if (const auto* unlink = std::get_if<UnlinkRegion>(&message.body))
    return ReplyWhenUnused(unlink->session, message.cookie, regions_.Unlink(unlink->key));
  if (const auto* relink = std::get_if<RelinkRegion>(&message.body)) {
    const verbs::RegionConfig& config = relink->config;
    return ReplyWhenUnused(config.session, message.cookie, regions_.Replace(config));
  }
  if (const auto* unlink = std::get_if<UnlinkWindow>(&message.body))
    return ReplyWhenUnused(unlink->session, message.cookie, regions_.UnlinkWindow(unlink->name));
  ControlReply reply;
  std::visit(
      [&](auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, LinkSession> || std::is_same_v<Body, ModifyQp> ||
                      std::is_same_v<Body, UsePeerRules>) {
          reply = Do(body, now);
        } else if constexpr (std::is_same_v<Body, std::monostate> ||
                             std::is_same_v<Body, UnlinkRegion> ||
                             std::is_same_v<Body, RelinkRegion> ||
                             std::is_same_v<Body, UnlinkWindow>) {
          reply = Failed(EINVAL);
        } else {
          reply = Do(body);
        }
      },
      message.body);
  Reply(message.cookie, std::move(reply));
}

ControlReply Worker::Do(LinkSession& body, TimePoint now) {
  auto session = std::make_unique<WorkerSession>();
  session->link = body;
  session->last_active = now;
  WorkerSession* raw = session.get();
  if (!sessions_.emplace(body.session.value, std::move(session)).second) return Failed(EEXIST);
  if (body.xrc_domain) raw->domain = std::make_unique<transport::XrcDomain>();
  raw->account = scheduler_.Open(body.share);
  references_.AddSession(body.share);
  raw->staged_shared.busy = &busy_staged_;
  active_.push_back(raw);
  if (body.copier != nullptr) with_copier_.push_back(raw);
  if (options_.watch != nullptr && body.wake_fd >= 0) {
    options_.watch(options_.watch_context, body.wake_fd, body.session, true);
  }
  return {};
}

ControlReply Worker::Do(const UnlinkSession& body) {
  WorkerSession* session = SessionOf(body.session);
  if (session == nullptr) return Failed(ENOENT);
  if (options_.watch != nullptr && session->link.wake_fd >= 0) {
    options_.watch(options_.watch_context, session->link.wake_fd, body.session, false);
  }
  std::erase(active_, session);
  std::erase(with_ops_, session);
  std::erase(with_copier_, session);
  if (std::erase(with_times_, session) != 0) ReportTimes(*session);
  for (const CopierBatch& batch : session->submitted) {
    for (const Outgoing& out : batch.packets) options_.ports[out.device]->Release(out.packet);
  }
  for (const Outgoing& out : session->held) options_.ports[out.device]->Release(out.packet);
  for (const auto& late : session->late_replies) Reply(late.cookie, {});
  for (Outgoing& out : outgoing_) {
    if (out.account == session->account) out.account = nullptr;
  }
  EndStaged(*session);
  scheduler_.Close(session->account);
  references_.RemoveSession(session->link.share);
  sessions_.erase(body.session.value);
  return {};
}

ControlReply Worker::Do(const AddDoorbellPage& body) {
  WorkerSession* session = SessionOf(body.session);
  if (session == nullptr) return Failed(ENOENT);
  if (body.page != session->pages.size()) return Failed(EINVAL);
  session->pages.push_back({body.memory, std::vector<SlotHandle>(ROCEGW_DOORBELL_BITS)});
  return {};
}

SlotHandle Worker::TakeSlot() {
  uint32_t index;
  if (free_slots_.empty()) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_slots_.back();
    free_slots_.pop_back();
  }
  return {index, slots_[index].generation};
}

ControlReply Worker::Do(const PrepareQp& body) {
  const SlotHandle handle = TakeSlot();
  if (!qps_.Insert(body.qpn.value, handle)) {
    free_slots_.push_back(handle.index);
    return Failed(EEXIST);
  }
  slots_[handle.index].qp = transport::MakeReadyQueuePair(body.shape);
  slots_[handle.index].qp->context().handle = handle;
  // Space for its first events, so that they allocate nothing.
  scheduler_.Reserve(slots_.size());
  return {};
}

std::unique_ptr<transport::QueuePair> Worker::MakeQp(const verbs::QpConfig& config) {
  switch (config.type) {
    case verbs::QpType::kUd:
      return transport::MakeUdQueuePair(config);
    case verbs::QpType::kUc:
      return transport::MakeUcQueuePair(config);
    case verbs::QpType::kEndpoint:
      return transport::MakeEndpoint(config);
    case verbs::QpType::kXrcReceive:
      return transport::MakeXrcTarget(config, CongestionOf(config), *DomainOf(config.session));
    case verbs::QpType::kRc:
    case verbs::QpType::kXrcSend:
      break;
  }
  return transport::MakeRcQueuePair(config, CongestionOf(config));
}

ControlReply Worker::Do(const LinkQp& body) {
  const verbs::QpConfig& config = body.config;
  WorkerSession* session = SessionOf(config.session);
  if (session == nullptr) return Failed(ENOENT);
  // XRC receiving queue pairs have no queues of their own; each message selects them.
  const bool queueless = config.type == verbs::QpType::kXrcReceive;
  verbs::CompletionQueue* const send_cq = CqOf(config.session, config.send_cq);
  verbs::CompletionQueue* const recv_cq = CqOf(config.session, config.recv_cq);
  const bool bell =
      config.doorbell_page < session->pages.size() && config.doorbell_bit < ROCEGW_DOORBELL_BITS;
  if (queueless != (session->domain != nullptr) || config.device >= options_.ports.size() ||
      (!queueless && (send_cq == nullptr || recv_cq == nullptr || !bell))) {
    return Failed(EINVAL);
  }
  transport::SharedReceives* const srq = SrqOf(config.session, config.srq);
  if (config.srq != 0 && srq == nullptr) return Failed(EINVAL);
  transport::EndpointGroup* const group = GroupOf(config.session, config.group);
  if (config.group != kInvalidQpn && group == nullptr) return Failed(EINVAL);
  SlotHandle handle;
  if (const SlotHandle* const ready = qps_.Find(config.qpn.value)) {
    handle = *ready;
    if (slots_[handle.index].session != nullptr) return Failed(EEXIST);
    slots_[handle.index].qp->Adopt(config, CongestionOf(config));
  } else {
    handle = TakeSlot();
    qps_.Insert(config.qpn.value, handle);
    slots_[handle.index].qp = MakeQp(config);
  }
  QpSlot& slot = slots_[handle.index];
  slot.session = session;
  slot.runnable = false;
  slot.bytes_left = 0;
  slot.armed = kNever;
  transport::QpContext& context = slot.qp->context();
  context.handle = handle;
  context.send_cq = send_cq;
  context.recv_cq = recv_cq;
  context.TakeReceivesFrom(srq);
  context.worker = &tables_;
  context.owner = session;
  context.peers = &session->peers;
  context.line = {};
  if (!queueless) session->pages[config.doorbell_page].by_bit[config.doorbell_bit] = handle;
  if (group != nullptr) group->Join(*slot.qp);
  if (config.type == verbs::QpType::kEndpoint) references_.AddEndpoint(session->link.share);
  return {};
}

ControlReply Worker::Do(const UnlinkQp& body) {
  QpSlot* slot = SlotOf(body.qpn);
  if (slot == nullptr || slot->qp->context().config.session != body.session) return Failed(ENOENT);
  const transport::QpContext& context = slot->qp->context();
  if (slot->session != nullptr && slot->session->domain == nullptr) {
    slot->session->pages[context.rare.doorbell_page].by_bit[context.rare.doorbell_bit] =
        SlotHandle{};
  }
  if (slot->session != nullptr && !slot->session->failed) slot->qp->SendLast(*this, now_);
  if (context.srq != nullptr || context.config.type == verbs::QpType::kXrcReceive)
    slot->qp->GiveBackReceives();
  const uint32_t index = context.handle.index;
  if (transport::EndpointGroup* const group = GroupOf(context.config.session, context.rare.group))
    group->Leave(*slot->qp, now_);
  KeepTombstone(*slot->qp);
  if (slot->session != nullptr) EndReferences(*slot);
  if (context.config.type == verbs::QpType::kEndpoint)
    references_.RemoveEndpoint(slot->session->link.share);
  qps_.Erase(body.qpn.value);
  slot->qp.reset();
  slot->session = nullptr;
  ++slot->generation;
  free_slots_.push_back(index);
  return {};
}

QpSnapshot Worker::SnapshotOf(const QpSlot& slot) {
  const transport::QpContext& context = slot.qp->context();
  const transport::QueuePair::Psns psns = slot.qp->psns();
  QpSnapshot snapshot{
      .session = context.config.session,
      .qp_handle = context.config.qp_handle,
      .qpn = context.config.qpn,
      .type = context.config.type,
      .attributes = context.attributes,
      .next_send_psn = psns.next,
      .oldest_unacked_psn = psns.una,
      .expected_psn = psns.expected,
      .send_outstanding = slot.qp->outstanding(),
      .sends_completed = context.sends_completed(),
      .receives_completed = context.receives_completed(),
      .bytes_sent = context.bytes_sent(),
      .bytes_received = context.bytes_received(),
      .retransmits = context.retransmits,
      .on_channel = context.carrier != nullptr,
      .channel = context.carrier != nullptr ? context.carrier->number() : kInvalidQpn,
      .beside = {},
      .declined = context.declined};
  snapshot.attributes.sq_draining = slot.qp->draining();
  if (context.multipath != nullptr) snapshot.beside = context.multipath->Numbers();
  return snapshot;
}

ControlReply Worker::Do(const ModifyQp& body, TimePoint now) {
  QpSlot* slot = SlotOf(body.qpn);
  if (slot == nullptr || slot->qp->context().config.session != body.session) return Failed(ENOENT);
  const ChannelSlots slots = ChannelsOf(*slot);
  const int error = slot->qp->Modify(*this, body.mask, body.attributes, now);
  EndReferences(*slot, slots);
  const transport::QpContext& context = slot->qp->context();
  if (error == 0 && body.channel.has_value() && context.state() == verbs::QpState::kRtr &&
      context.config.type == verbs::QpType::kRc) {
    BindChannel(*slot->qp, *body.channel);
  }
  AfterEvent(*slot, slot->qp->context().handle);
  return Failed(error);
}

ControlReply Worker::Do(const QueryQp& body) {
  QpSlot* slot = SlotOf(body.qpn);
  if (slot == nullptr || slot->qp->context().config.session != body.session) return Failed(ENOENT);
  ControlReply reply;
  reply.qps.push_back(SnapshotOf(*slot));
  return reply;
}

ControlReply Worker::Do(const LinkPeer& body) {
  WorkerSession* session = SessionOf(body.session);
  if (session == nullptr) return Failed(ENOENT);
  if (body.peer.device >= options_.ports.size()) return Failed(EINVAL);
  return Failed(session->peers.emplace(body.handle, body.peer).second ? 0 : EEXIST);
}

ControlReply Worker::Do(const UnlinkPeer& body) {
  WorkerSession* session = SessionOf(body.session);
  return Failed(session != nullptr && session->peers.erase(body.handle) != 0 ? 0 : ENOENT);
}

transport::EndpointGroup* Worker::GroupOf(SessionId session, Qpn number) {
  const auto group = groups_.find(number.value);
  const bool theirs = group != groups_.end() && group->second.config().session == session;
  return theirs ? &group->second : nullptr;
}

ControlReply Worker::Do(const LinkGroup& body) {
  const verbs::GroupConfig& config = body.config;
  if (SessionOf(config.session) == nullptr) return Failed(ENOENT);
  if (config.number == kInvalidQpn || qps_.Find(config.number.value) != nullptr)
    return Failed(EEXIST);
  return Failed(groups_.emplace(config.number.value, config).second ? 0 : EEXIST);
}

ControlReply Worker::Do(const UnlinkGroup& body) {
  const auto group = groups_.find(body.number.value);
  if (group == groups_.end() || group->second.config().session != body.session)
    return Failed(ENOENT);
  groups_.erase(group);
  return {};
}

ControlReply Worker::Do(const LinkRegion& body) {
  return Failed(regions_.Link(body.config) ? 0 : EEXIST);
}

ControlReply Worker::Do(const LinkWindow& body) {
  return Failed(regions_.LinkWindow(body.name, *body.window) ? 0 : EEXIST);
}

ControlReply Worker::Do(const SendMad& body) {
  if (body.device >= options_.ports.size()) return Failed(ENODEV);
  port::TxPacket* packet = options_.ports[body.device]->Acquire();
  if (packet == nullptr) return Failed(EAGAIN);
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kUdSendOnly;
  headers.bth.dest_qpn = body.destination;
  headers.bth.psn = Psn(gsi_psn_++);
  headers.deth = {wire::kGsiQkey, kGsiQpn};
  const size_t header_length = wire::EncodeHeaders(headers, packet->data);
  std::memcpy(packet->data + header_length, body.mad.data(), body.mad.size());
  packet->length = static_cast<uint32_t>(header_length + body.mad.size());
  packet->known_crc = {};
  packet->source_qpn = kGsiQpn;
  packet->path = body.path;
  outgoing_.push_back({packet, body.device});
  counters_.mad_tx_packets.Add();
  return {};
}

ControlReply Worker::Do(const UsePorts& body) {
  if (body.ports.size() != options_.ports.size()) return Failed(EINVAL);
  options_.ports = body.ports;
  return {};
}

ControlReply Worker::Do(const UseChannels& body) {
  channels_.Use(body.options, options_.channel_congestion, options_.channel_policy, now_);
  return {};
}

ControlReply Worker::Do(const NameMember& body) {
  channels_.SetMember(body.peer, body.member);
  return {};
}

ControlReply Worker::Do(const KnowPeer& body) {
  if (body.known)
    known_peers_.insert(body.peer);
  else
    known_peers_.erase(body.peer);
  return {};
}

ControlReply Worker::Do(const UseKeys& body) {
  channels_.SetKeys(body.keys);
  return {};
}

ControlReply Worker::Do(const SnapshotChannels&) {
  ControlReply reply;
  reply.channels = channels_.Snapshots();
  return reply;
}

ControlReply Worker::Do(const SnapshotPeers&) {
  ControlReply reply;
  reply.peers = channels_.Traffic();
  return reply;
}

ControlReply Worker::Do(const SnapshotQps& body) {
  ControlReply reply;
  for (const QpSlot& slot : slots_) {
    if (slot.session == nullptr) continue;
    if (body.session.value != 0 && slot.qp->context().config.session != body.session) continue;
    reply.qps.push_back(SnapshotOf(slot));
  }
  return reply;
}

}  // namespace rocegw::worker
