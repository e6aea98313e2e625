// SPDX-License-Identifier: Apache-2.0
// Choice of the channels that queue pairs use, within the channel limits of their pools
// (channel_references.h).
#include <algorithm>
#include <ranges>

#include "gateway/worker/worker.h"

namespace rocegw::worker {

flow::Carrier* Worker::Reach(transport::QpContext& qp, const transport::Peer& peer,
                             uint32_t beside) {
  // Without such a path, the pool's limit must not be charged or reported.
  if (!channels_.HasPath(beside)) return nullptr;
  const uint32_t number = peer.endpoint.value;
  channel::Channel* const known = channels_.Known(peer.target, peer.path, number, beside);
  if (!MayUse(qp, known)) return nullptr;
  return BeginUse(qp, known != nullptr ? known
                                       : channels_.Reach(peer.target, peer.path, number,
                                                         peer.device, now_, beside));
}

flow::Carrier* Worker::Beside(transport::QpContext& qp, const flow::Carrier& carrier,
                              uint32_t paths) {
  const channel::Channel& own = ChannelOf(OwnerOf(qp), carrier);
  channel::Channel* const known = channels_.KnownBeside(own, paths);
  if (!channels_.HasBeside(own, paths) || !MayUse(qp, known)) return nullptr;
  return BeginUse(qp, known != nullptr ? known : channels_.Beside(own, paths, now_));
}

void Worker::BindChannel(transport::QueuePair& queue_pair, const verbs::ChannelTarget& target) {
  transport::QpContext& qp = queue_pair.context();
  const wire::Path& path = qp.attributes.path;
  const uint32_t number = qp.config.qpn.value + qp.attributes.dest_qpn.value;
  channel::Channel* const known = channels_.Known(target, path, number);
  if (!MayUse(qp, known)) {
    qp.declined = wire::ChannelReason::kNotAllowed;
    return;
  }
  flow::Carrier* const carrier = BeginUse(
      qp, known != nullptr ? known : channels_.Reach(target, path, number, qp.config.device, now_));
  if (carrier == nullptr) {
    qp.declined = wire::ChannelReason::kNoResources;
    return;
  }
  queue_pair.BindCarrier(*carrier);
  qp.peer_relaxes = (target.features & wire::kOptionOrdering) != 0;
  qp.peer_invalidates = (target.features & wire::kOptionInvalidation) != 0;
  qp.peer_places = (target.features & wire::kOptionPlacement) != 0;
}

// Returns true if the pool may use a channel. `known`: the existing channel; nullptr: a new one
// would be opened, which happens only after permission.
bool Worker::MayUse(transport::QpContext& qp, const channel::Channel* known) {
  tenant::Share* const pool = OwnerOf(qp).link.share;
  if (known != nullptr && references_.Has(pool, known->slot())) return true;
  const tenant::QuotaNode* const by = references_.Take(pool);
  if (by != nullptr && references_.ReportsNow(pool, now_)) Notify({0, ChannelRefused{pool, by}});
  return by == nullptr;
}

// Begins the use of the channel after MayUse. Returns nullptr if the channel could not be opened.
flow::Carrier* Worker::BeginUse(transport::QpContext& qp, channel::Channel* channel) {
  tenant::Share* const pool = OwnerOf(qp).link.share;
  if (channel == nullptr) {
    ChannelReferences::GiveBack(pool);
    return nullptr;
  }
  flow::Carrier& carrier = CarrierFor(qp, *channel);
  if (qp.config.type == verbs::QpType::kEndpoint) {
    references_.BeginForEndpoints(pool, channel->slot());
  } else if (!qp.IsBeside(carrier)) {
    references_.Begin(pool, channel->slot());
  }
  return &carrier;
}

// Returns the channel below a carrier of that session.
const channel::Channel& Worker::ChannelOf(const WorkerSession& session,
                                          const flow::Carrier& carrier) {
  const bool staged = session.link.copier != nullptr;
  return static_cast<const channel::Channel&>(
      staged ? *static_cast<const channel::StagedCarrier&>(carrier).channel() : carrier);
}

// Returns the channels that the requests of a connected queue pair leave by.
Worker::ChannelSlots Worker::ChannelsOf(const QpSlot& slot) {
  ChannelSlots slots;
  const transport::QpContext& qp = slot.qp->context();
  const auto add = [&](const flow::Carrier& carrier) {
    slots.slots[slots.count++] = ChannelOf(*slot.session, carrier).slot();
  };
  if (qp.carrier != nullptr) add(*qp.carrier);
  for (size_t i = 0; qp.multipath != nullptr && i < qp.multipath->size(); ++i)
    add(qp.multipath->At(i));
  return slots;
}

// Ends references to the channels of `before` that the queue pair no longer uses.
void Worker::EndReferences(const QpSlot& slot, const ChannelSlots& before) {
  if (before.count == 0) return;
  const ChannelSlots now = ChannelsOf(slot);
  for (const uint32_t used : before.all()) {
    if (std::ranges::find(now.all(), used) == now.all().end())
      references_.End(slot.session->link.share, used);
  }
}

void Worker::EndReferences(const QpSlot& slot) {
  const ChannelSlots slots = ChannelsOf(slot);
  for (const uint32_t used : slots.all()) references_.End(slot.session->link.share, used);
}

}  // namespace rocegw::worker
