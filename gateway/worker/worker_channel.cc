// SPDX-License-Identifier: Apache-2.0
// Connection of a worker's channels and queue pairs: delivers frames to their queue pair, and
// returns lost frames to the owner that can rebuild them.
#include "gateway/transport/message/frame_packet.h"
#include "gateway/worker/worker.h"

namespace rocegw::worker {

using metrics::DropReason;

Worker::StateBytes Worker::MeasureState() const {
  StateBytes state{.channels = channels_.MeasureBytes()};
  for (const QpSlot& slot : slots_) {
    if (slot.session == nullptr) continue;
    ++state.endpoints;
    state.endpoint_bytes += slot.qp->channel_bytes();
  }
  return state;
}

DropReason Worker::OnChannelPacket(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  channel::Delivery delivery;
  const DropReason reason = channels_.OnPacket(device, packet, now, delivery);
  return delivery.channel == nullptr ? reason : Deliver(delivery, now);
}

// Returns the slot of the frame's queue pair; for a group, of the chosen member.
Worker::QpSlot* Worker::ReceiverOf(const channel::Delivery& delivery) {
  const wire::ChannelFrame& frame = delivery.frame;
  if (const SlotHandle* const found = qps_.Find(frame.destination.value)) return Slot(*found);
  const auto group = groups_.find(frame.destination.value);
  if (group == groups_.end() || !frame.has(wire::kFrameEndpoint)) return nullptr;
  transport::QueuePair* const member = group->second.Choose(
      {delivery.channel, frame.source.value, frame.message, frame.attempt}, frame);
  return member == nullptr ? nullptr : Slot(member->context().handle);
}

DropReason Worker::Deliver(const channel::Delivery& delivery, TimePoint now) {
  const wire::ChannelFrame& frame = delivery.frame;
  const auto refuse = [&](DropReason reason) {
    channels_.RefuseEndpoint(delivery, now);
    return reason;
  };
  QpSlot* const slot = ReceiverOf(delivery);
  if (slot == nullptr || slot->session == nullptr || slot->session->failed)
    return refuse(DropReason::k_endpoint_not_ready);
  const transport::QpContext& qp = slot->qp->context();
  const SlotHandle handle = qp.handle;
  // A frame for a queue pair must come from the peer that it is connected to; a frame for an
  // endpoint from a peer that its pool may talk to.
  channel::Channel& by = *delivery.channel;
  bool welcome = qp.receives();
  if (qp.config.type == verbs::QpType::kEndpoint) {
    welcome = welcome && (frame.has(wire::kFrameEndpoint) || transport::IsAnswer(frame.kind)) &&
              (qp.rare.peers == nullptr || qp.rare.peers->Allow(by.peer()));
  } else {
    // The queue pair's own channel was selected by these addresses.
    const wire::Path& path = qp.attributes.path;
    const bool between_us =
        qp.carrier == &by || (path.destination == by.peer() && path.source == by.key().source);
    welcome = welcome && qp.config.type == verbs::QpType::kRc && !frame.has(wire::kFrameEndpoint) &&
              qp.attributes.dest_qpn == frame.source && between_us;
  }
  if (!welcome) return refuse(DropReason::k_endpoint_not_ready);
  if (frame.tenant != qp.config.tenant_tag && !frame.not_ready())
    return refuse(DropReason::k_wrong_tenant);
  scheduler_.Note(*slot->session->account, 1, delivery.payload.size());
  const DropReason reason = slot->qp->OnFrame(*this, CarrierFor(slot->qp->context(), by), frame,
                                              delivery.payload, slot->session->backlogged, now);
  AfterEvent(*slot, handle);
  return reason;
}

port::TxPacket* Worker::NewChannelPacket(uint32_t device) {
  return options_.ports[device]->Acquire();
}

size_t Worker::MaxDatagram(uint32_t device, const wire::Gid& peer) const {
  return options_.ports[device]->limits().MaxDatagramTo(peer);
}

void Worker::SendChannelPacket(uint32_t device, port::TxPacket* packet) {
  outgoing_.push_back({packet, device});
}

flow::Resend Worker::BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                                Psn psn) {
  if ((frame.owner.index & kStagedHandle) != 0) return SendStagedAgain(frame, psn);
  QpSlot* slot = Slot(frame.owner);
  if (slot == nullptr || slot->session == nullptr || slot->session->failed)
    return flow::Resend::kVoid;
  const flow::Resend result = slot->qp->Again(*this, carrier, frame, psn);
  AfterEvent(*slot, frame.owner);
  return result;
}

// Keeps a tombstone: programs often exit as soon as they have got what they waited for.
void Worker::KeepTombstone(const transport::QueuePair& endpoint) {
  std::unique_ptr<transport::EndpointTombstone> tombstone = endpoint.MakeTombstone();
  if (tombstone == nullptr) return;
  while (!tombstones_.empty() &&
         (tombstones_.front().until < now_ || tombstones_.size() >= kMostTombstones)) {
    tombstones_.pop_front();
  }
  tombstones_.push_back({std::move(tombstone), now_ + transport::EndpointTombstone::kAge});
}

bool Worker::AnswerOfDeparted(const flow::FrameRef& lost, wire::ChannelFrame& frame) {
  for (const Tombstone& one : tombstones_)
    if (one.endpoint->handle() == lost.owner) return one.endpoint->Answer(lost, frame);
  return false;
}

void Worker::OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) {
  if ((frame.owner.index & kStagedHandle) == 0) return NoteArrived(carrier, frame);
  const channel::StagedCarrier* const staged = StagedBy(frame.owner);
  const flow::FrameRef* const own = staged == nullptr ? nullptr : staged->Sent(frame.message);
  if (own != nullptr) NoteArrived(*staged, *own);
}

void Worker::NoteArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) {
  QpSlot* const slot = Slot(frame.owner);
  if (slot == nullptr || slot->session == nullptr) return;
  if (slot->qp->OnArrived(carrier, frame)) MakeRunnable(*slot, frame.owner);
}

void Worker::OnTurn(const flow::Carrier& carrier, SlotHandle handle) {
  if ((handle.index & kStagedHandle) != 0) {
    channel::StagedCarrier* const staged = StagedBy(handle);
    if (staged == nullptr) return;
    staged->OnTurn();
    // At once, because others would take the window that made this its turn.
    SendStaged(*staged, now_);
    return;
  }
  QpSlot* slot = Slot(handle);
  if (slot == nullptr || slot->session == nullptr) return;
  slot->qp->OnTurn(carrier);
  MakeRunnable(*slot, handle);
}

void Worker::OnChannelGone(const flow::Carrier& carrier, bool opened, wire::ChannelReason why) {
  for (QpSlot& slot : slots_) {
    if (slot.session == nullptr) continue;
    const flow::Carrier* const staged = StagedOn(*slot.session, carrier);
    const ChannelSlots slots = ChannelsOf(slot);
    slot.qp->OnCarrierLost(*this, staged != nullptr ? *staged : carrier, opened, why, now_);
    EndReferences(slot, slots);
    // A queue pair that falls back to plain RoCEv2 has something to send.
    if (slot.qp->context().declined != wire::ChannelReason::kNone)
      MakeRunnable(slot, slot.qp->context().handle);
    AfterEvent(slot, slot.qp->context().handle);
  }
  for (auto& [number, group] : groups_) group.OnCarrierLost(carrier);
  EndStaged(carrier);
  if (!opened || why == wire::ChannelReason::kUnknownChannel ||
      why == wire::ChannelReason::kStaleEpoch) {
    Notify({0, PeerChanged{carrier.peer()}});
  }
}

void Worker::ArmChannel(uint32_t slot, TimePoint when) {
  wheel_.Arm({slot | kChannelTimer, 0}, when);
}

}  // namespace rocegw::worker
