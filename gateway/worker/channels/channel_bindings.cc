// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/channels/channel_bindings.h"

#include <algorithm>
#include <ranges>

namespace rocegw::worker {

flow::Carrier* ChannelBindings::Reach(transport::QpContext& qp, const transport::Peer& peer,
                                      uint32_t beside) {
  channel::ChannelSet& channels = uses_.channels;
  // Without such a path, the pool's limit must not be charged or reported.
  if (!channels.HasPath(beside)) return nullptr;
  const uint32_t number = peer.endpoint.value;
  channel::Channel* const known = channels.Known(peer.target, peer.path, number, beside);
  if (!MayUse(qp, known)) return nullptr;
  return BeginUse(qp, known != nullptr ? known
                                       : channels.Reach(peer.target, peer.path, number, peer.device,
                                                        uses_.round.now, beside));
}

flow::Carrier* ChannelBindings::Beside(transport::QpContext& qp, const flow::Carrier& carrier,
                                       uint32_t paths) {
  channel::ChannelSet& channels = uses_.channels;
  channel::Channel* const known = channels.KnownBeside(carrier, paths);
  if (!channels.HasBeside(carrier, paths) || !MayUse(qp, known)) return nullptr;
  return BeginUse(qp, known != nullptr ? known : channels.Beside(carrier, paths, uses_.round.now));
}

void ChannelBindings::Bind(transport::QueuePair& queue_pair, const verbs::ChannelTarget& target) {
  transport::QpContext& qp = queue_pair.context();
  const wire::Path& path = qp.attributes.path;
  const uint32_t number = qp.config.qpn.value + qp.attributes.dest_qpn.value;
  channel::Channel* const known = uses_.channels.Known(target, path, number);
  if (!MayUse(qp, known)) {
    qp.declined = wire::ChannelReason::kNotAllowed;
    return;
  }
  flow::Carrier* const carrier = BeginUse(
      qp, known != nullptr
              ? known
              : uses_.channels.Reach(target, path, number, qp.config.device, uses_.round.now));
  if (carrier == nullptr) {
    qp.declined = wire::ChannelReason::kNoResources;
    return;
  }
  queue_pair.BindCarrier(*carrier);
  qp.peer_relaxes = (target.features & wire::kOptionOrdering) != 0;
  qp.peer_invalidates = (target.features & wire::kOptionInvalidation) != 0;
  qp.peer_places = (target.features & wire::kOptionPlacement) != 0;
  qp.peer_operates = (target.features & wire::kOptionFetchOperate) != 0;
}

// Returns true if the pool may use a channel. `known`: the existing channel; nullptr: a new one
// would be opened, which happens only after permission.
bool ChannelBindings::MayUse(transport::QpContext& qp, const channel::Channel* known) {
  tenant::Share* const pool = uses_.sessions.Of(qp).link.share;
  if (known != nullptr && references_.Has(pool, known->slot())) return true;
  const tenant::QuotaNode* const by = references_.Take(pool);
  if (by != nullptr && references_.ReportsNow(pool, uses_.round.now))
    uses_.control.Notify({0, ChannelRefused{pool, by}});
  return by == nullptr;
}

// Begins the use of the channel after MayUse. Returns nullptr if the channel could not be opened.
flow::Carrier* ChannelBindings::BeginUse(transport::QpContext& qp, channel::Channel* channel) {
  tenant::Share* const pool = uses_.sessions.Of(qp).link.share;
  if (channel == nullptr) {
    ChannelReferences::GiveBack(pool);
    return nullptr;
  }
  flow::Carrier& carrier = CarrierFor(qp, *channel);
  if (qp.config.type == verbs::QpType::kEndpoint) {
    references_.BeginForEndpoints(pool, channel->slot());
  } else if (qp.multipath == nullptr || !qp.multipath->ForRequests(carrier)) {
    references_.Begin(pool, channel->slot());
  }
  return &carrier;
}

flow::Carrier& ChannelBindings::CarrierFor(const transport::QpContext& qp,
                                           channel::Channel& channel) {
  return uses_.staged.CarrierFor(uses_.sessions.Of(qp), channel, channel.device(),
                                 qp.config.tenant_tag);
}

const flow::Carrier& ChannelBindings::SeenBy(SessionId id, const channel::Channel& channel) const {
  const WorkerSession* const session = uses_.sessions.Find(id);
  const flow::Carrier* const staged =
      session == nullptr ? nullptr : StagedFrames::On(*session, channel);
  return staged == nullptr ? channel : *staged;
}

ChannelBindings::Slots ChannelBindings::SlotsOf(const transport::QpContext& qp) const {
  Slots slots;
  const auto add = [&](const flow::Carrier& carrier) {
    // A gateway has as many paths (Multipath).
    if (slots.count < slots.slots.size())
      slots.slots[slots.count++] = uses_.channels.SlotOf(carrier.number());
  };
  if (qp.carrier != nullptr) add(*qp.carrier);
  for (size_t i = 0; qp.multipath != nullptr && i < qp.multipath->size(); ++i) {
    if (qp.multipath->ForRequests(qp.multipath->At(i))) add(qp.multipath->At(i));
  }
  return slots;
}

void ChannelBindings::EndUnused(const QpSlot& slot, const Slots& before) {
  if (before.count == 0) return;
  const Slots now = SlotsOf(slot.qp->context());
  for (const uint32_t used : before.all()) {
    if (std::ranges::find(now.all(), used) == now.all().end())
      references_.End(slot.session->link.share, used);
  }
}

void ChannelBindings::EndAll(const QpSlot& slot) {
  const Slots slots = SlotsOf(slot.qp->context());
  for (const uint32_t used : slots.all()) references_.End(slot.session->link.share, used);
}

}  // namespace rocegw::worker
