// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/receive/demultiplexer.h"

#include <algorithm>
#include <cstring>

#include "gateway/transport/message/frame_packet.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/gateway_mad.h"
#include "gateway/worker/objects/qp_prefetch.h"

namespace rocegw::worker {

using metrics::DropReason;
using metrics::FromAnybody;

namespace {
// Cost of moving a frame to its pool's queue, in bytes of payload (Scheduler::Note).
constexpr uint64_t kCostOfQueueing = 256;
}  // namespace

Account* Demultiplexer::PoolOf(Qpn receiver) const {
  if (const QpSlot* const slot = uses_.qps.Find(receiver)) {
    if (slot->session == nullptr) return nullptr;
    __builtin_prefetch(slot->qp.get());
    return slot->session->account;
  }
  const transport::EndpointGroup* const group = uses_.groups.Find(receiver);
  if (group == nullptr) return nullptr;
  const WorkerSession* const session = uses_.sessions.Find(group->config().session);
  return session == nullptr ? nullptr : session->account;
}

Account* Demultiplexer::PoolOf(const WaitingPacket& packet) const {
  return PoolOf(packet.channel == kInvalidQpn ? port::DestinationQpn(packet.bytes)
                                              : wire::PeekDestination(packet.bytes));
}

void Demultiplexer::OnWaiting(const WaitingPacket& packet, TimePoint now) {
  if (packet.channel == kInvalidQpn)
    return OnDatagram(packet.device, {packet.meta, packet.bytes}, now);
  channel::Delivery delivery{.channel = uses_.channels.Find(packet.channel)};
  // Without the channel, its queue pairs have ended.
  if (delivery.channel == nullptr || delivery.channel->epoch() != packet.epoch) return;
  DropReason reason = wire::DecodeFrame(packet.bytes, delivery.frame, delivery.payload);
  if (reason == DropReason::kNone) reason = Deliver(delivery, now);
  if (reason != DropReason::kNone) uses_.counters.Drop(reason);
}

void Demultiplexer::OnDatagram(uint32_t device, const wire::RxDatagram& datagram, TimePoint now) {
  wire::RxPacket packet;
  DropReason reason = wire::Decode(datagram, packet);
  if (reason == DropReason::kNone) {
    const wire::RxMeta& meta = packet.meta;
    if (!meta.ip_id_known && meta.source.IsV4())
      uses_.counters.icrc_id_jump_packets.Add(ip_ids_.Observe(meta.source.V4(), meta.ip_id, now));
    if ((meta.traffic_class & wire::kEcnMask) == wire::kEcnCe)
      uses_.counters.rx_ce_marked_packets.Add();
    reason = Dispatch(device, packet, now);
  }
  if (reason != DropReason::kNone) {
    uses_.counters.Drop(reason);
    if (FromAnybody(reason))
      uses_.flood.OnStray(datagram.meta.source, port::KindOf(datagram.bytes));
  }
}

DropReason Demultiplexer::Dispatch(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  const Qpn qpn = packet.headers.bth.dest_qpn;
  if (qpn == kGsiQpn) return ToControl(device, packet, now);
  if (qpn == kMulticastQpn) return ToGroup(device, packet, now);
  if (packet.traits->operation == wire::Operation::kChannelSealed) {
    wire::RxPacket inner;
    const DropReason reason = uses_.channels.OpenSeal(device, packet, now, inner);
    return reason == DropReason::kNone ? Dispatch(device, inner, now) : reason;
  }
  if (packet.traits->operation == wire::Operation::kChannelBundle)
    return ToChannelEach(device, packet, now);
  if (packet.traits->service == wire::Service::kChannel) return ToChannel(device, packet, now);
  return ToQueuePairOrLater(device, packet, now);
}

DropReason Demultiplexer::ToQueuePairOrLater(uint32_t device, const wire::RxPacket& packet,
                                             TimePoint now) {
  const DropReason reason = ToQueuePair(device, packet, now);
  const bool too_early = reason == DropReason::k_qp_state || reason == DropReason::k_unknown_qpn;
  if (!too_early || !uses_.handler.has_messages()) return reason;
  // The session may have told its program about a change that is still in the ring, and the peer
  // may rely on it.
  uses_.handler.Apply();
  return ToQueuePair(device, packet, now);
}

DropReason Demultiplexer::ToQueuePair(uint32_t device, const wire::RxPacket& packet,
                                      TimePoint now) {
  const SlotHandle* const found = uses_.qps.HandleOf(packet.headers.bth.dest_qpn);
  if (found == nullptr) return DropReason::k_unknown_qpn;
  const SlotHandle handle = *found;
  QpSlot* const slot = uses_.qps.FindLinked(handle);
  if (slot == nullptr || slot->qp->context().config.device != device)
    return DropReason::k_unknown_qpn;
  if (slot->session->failed) return DropReason::k_qp_state;
  if (slot->session->backlogged) return DropReason::k_write_pending;
  uses_.scheduler.Note(*slot->session->account, 1, packet.payload.size());
  const DropReason reason = slot->qp->OnPacket(uses_.outbox, packet, now);
  uses_.activity.AfterEvent(*slot, handle);
  // Anybody can send datagrams to a UD queue pair.
  if (uses_.flood.watching() && packet.traits->service != wire::Service::kUd &&
      !FromAnybody(reason))
    uses_.flood.OnPeer(packet.meta.source, now);
  return reason;
}

DropReason Demultiplexer::ToControl(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  if (packet.traits->service != wire::Service::kUd) return DropReason::k_wrong_service;
  if (packet.headers.deth.qkey != wire::kGsiQkey) return DropReason::k_wrong_qkey;
  MadReceived mad;
  if (packet.payload.size() != mad.mad.size()) return DropReason::k_mad_malformed;
  const wire::Gid& source = packet.meta.source;
  const bool discovery = wire::IsVendorMad(packet.payload);
  if (discovery && !uses_.discovery.Take(source, uses_.channels.IsMember(source), now))
    return DropReason::k_mad_rate;
  mad.device = device;
  mad.meta = packet.meta;
  mad.source_qpn = packet.headers.deth.source_qpn;
  std::memcpy(mad.mad.data(), packet.payload.data(), mad.mad.size());
  if (!uses_.control.SendDatagram(mad)) return DropReason::k_mad_rate;
  uses_.counters.mad_rx_packets.Add();
  uses_.flood.OnStray(source,
                      discovery ? port::FloodKind::kDiscovery : port::FloodKind::kConnection);
  return DropReason::kNone;
}

DropReason Demultiplexer::ToGroup(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  if (packet.traits->service != wire::Service::kUd) return DropReason::k_wrong_service;
  const std::vector<Qpn>* const members = uses_.multicast.Members(device, packet.meta.destination);
  if (members == nullptr) return DropReason::k_unknown_qpn;
  Pools served{};
  for (const Qpn member : *members) {
    if (uses_.steering.WorkerOf(member) != uses_.worker) continue;
    if (LosesCopy(member, served)) {
      uses_.counters.Drop(DropReason::k_handoff_full);
      continue;
    }
    const DropReason reason = ToMember(member, device, packet, now);
    if (reason != DropReason::kNone) uses_.counters.Drop(reason);
  }
  // Before the next datagram of the burst, which may have as many copies.
  uses_.scheduler.ChargeNoted();
  return DropReason::kNone;
}

// A pool gets its first copy of a datagram like any packet. Returns true if it loses a further one
// because it has used up its time: copies do not wait in its queue. `served`: pools of earlier
// copies.
bool Demultiplexer::LosesCopy(Qpn member, Pools& served) {
  const QpSlot* const slot = uses_.qps.Find(member);
  if (slot == nullptr || slot->session == nullptr) return false;
  Account& pool = *slot->session->account;
  if (std::ranges::find(served, &pool) == served.end()) {
    // If there are more pools than places, first copies of the others count as further ones.
    const auto free = std::ranges::find(served, nullptr);
    if (free != served.end()) {
      *free = &pool;
      return false;
    }
  }
  if (!uses_.scheduler.InDeepDebt(pool)) return false;
  uses_.scheduler.Wait(pool);
  return true;
}

// Gives a copy to an attached queue pair, but never to the sender.
DropReason Demultiplexer::ToMember(Qpn member, uint32_t device, const wire::RxPacket& packet,
                                   TimePoint now) {
  QpSlot* const slot = uses_.qps.Find(member);
  if (slot != nullptr && packet.headers.deth.source_qpn == member) {
    const verbs::GidTable* const own = slot->qp->context().rare.gids;
    const bool from_us = own != nullptr && std::find(own->entries.begin(), own->entries.end(),
                                                     packet.meta.source) != own->entries.end();
    if (from_us) return DropReason::kNone;
  }
  wire::RxPacket copy = packet;
  copy.headers.bth.dest_qpn = member;
  return ToQueuePair(device, copy, now);
}

DropReason Demultiplexer::ToChannel(uint32_t device, const wire::RxPacket& packet, TimePoint now) {
  if (uses_.scheduler.contended() && packet.headers.bth.opcode == wire::Opcode::kChannelFrame) {
    Account* const pool = PoolOf(wire::PeekDestination(packet.payload));
    if (pool != nullptr && MustWait(*pool)) return ToChannelLater(*pool, device, packet, now);
  }
  return ToChannelNow(device, packet, now);
}

// Gives the channel a frame whose pool has used up its time. What the channel takes counts as
// arrived, so that the frames of other pools do not wait for it, and joins the pool's queue. If
// much waits, the channel's peer may send few frames until its next acknowledgement.
DropReason Demultiplexer::ToChannelLater(Account& pool, uint32_t device,
                                         const wire::RxPacket& packet, TimePoint now) {
  const bool waits = uses_.waiting.Ask(pool, packet.payload.size()) == PoolQueues::Put::kQueued;
  channel::Delivery delivery;
  const DropReason reason = uses_.channels.OnPacket(device, packet, now, delivery);
  if (delivery.channel == nullptr) return reason;
  if (uses_.waiting.Crowded(pool)) delivery.channel->Narrow();
  if (!waits) return Deliver(delivery, now);
  uses_.scheduler.Note(pool, 0, kCostOfQueueing + packet.payload.size());
  uses_.waiting.Push(pool, {.device = device,
                            .channel = delivery.channel->number(),
                            .epoch = delivery.channel->epoch(),
                            .meta = {},
                            .bytes = packet.payload});
  return DropReason::kNone;
}

DropReason Demultiplexer::ToChannelNow(uint32_t device, const wire::RxPacket& packet,
                                       TimePoint now) {
  channel::Delivery delivery;
  const DropReason reason = uses_.channels.OnPacket(device, packet, now, delivery);
  // An opening that is answered costs more than one that is dropped.
  if (packet.headers.bth.opcode == wire::Opcode::kChannelControl && !packet.verified &&
      reason == DropReason::kNone)
    uses_.flood.OnStray(packet.meta.source, port::FloodKind::kOther);
  return delivery.channel == nullptr ? reason : Deliver(delivery, now);
}

// Processes the entries of a bundle as if each had come in a datagram of its own.
DropReason Demultiplexer::ToChannelEach(uint32_t device, const wire::RxPacket& packet,
                                        TimePoint now) {
  if (const DropReason reason = wire::CheckBundle(packet.payload); reason != DropReason::kNone)
    return reason;
  uses_.counters.channel_bundle_rx_packets.Add();
  wire::RxPacket alone = packet;
  std::span<const uint8_t> rest = packet.payload;
  wire::BundleEntry entry;
  if (uses_.qps.outgrows_caches()) {
    QpBurst ahead(uses_.qps);
    while (wire::TakeEntry(rest, entry)) ahead.Add(entry);
    ahead.PrefetchReceivers();
    rest = packet.payload;
  }
  while (wire::TakeEntry(rest, entry)) {
    alone.headers.bth.opcode = entry.opcode;
    alone.headers.bth.psn = entry.psn;
    alone.traits = &wire::TraitsOf(entry.opcode);
    alone.payload = entry.body;
    const DropReason reason = ToChannel(device, alone, now);
    if (reason == DropReason::kNone) continue;
    uses_.counters.Drop(reason);
    if (FromAnybody(reason)) uses_.flood.OnStray(packet.meta.source, port::FloodKind::kOther);
  }
  return DropReason::kNone;
}

// Returns the slot of the frame's queue pair; for a group, of the chosen member.
QpSlot* Demultiplexer::ReceiverOf(const channel::Delivery& delivery, TimePoint now) {
  const wire::ChannelFrame& frame = delivery.frame;
  if (const SlotHandle* const found = uses_.qps.HandleOf(frame.destination))
    return uses_.qps.Find(*found);
  transport::EndpointGroup* const group = uses_.groups.Find(frame.destination);
  if (group == nullptr || !frame.has(wire::kFrameEndpoint)) return nullptr;
  const flow::Carrier& carrier = uses_.bindings.SeenBy(group->config().session, *delivery.channel);
  transport::EndpointQueuePair* const member =
      group->Choose({&carrier, frame.source.value, frame.message, frame.attempt}, frame, now);
  return member == nullptr ? nullptr : uses_.qps.Find(member->context().handle);
}

DropReason Demultiplexer::Deliver(const channel::Delivery& delivery, TimePoint now) {
  const wire::ChannelFrame& frame = delivery.frame;
  const auto refuse = [&](DropReason reason) {
    uses_.channels.RefuseEndpoint(delivery, now);
    return reason;
  };
  QpSlot* const slot = ReceiverOf(delivery, now);
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
  uses_.scheduler.Note(*slot->session->account, 1, delivery.payload.size());
  const DropReason reason =
      slot->qp->OnFrame(uses_.outbox, uses_.bindings.CarrierFor(qp, by), frame, delivery.payload,
                        slot->session->backlogged, now);
  RecordHeap::Update(*slot);
  uses_.activity.AfterEvent(*slot, handle);
  if (uses_.flood.watching() && !FromAnybody(reason)) uses_.flood.OnPeer(by.peer(), now);
  return reason;
}

}  // namespace rocegw::worker
