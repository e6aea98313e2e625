// SPDX-License-Identifier: Apache-2.0
// State of a worker's use of channels for a gateway that takes over
// (gateway/hand_over/state_stream.h).
#include <algorithm>

#include "gateway/flow/carrier_names.h"
#include "gateway/hand_over/state_stream.h"
#include "gateway/tenant/quota_node.h"
#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/channels/staged_frames.h"

namespace rocegw::worker {

using channel::StagedCarrier;
using hand_over::StateStream;

namespace {

// Limits of lists that the numbers of sessions and channels bound otherwise.
constexpr uint32_t kMostStaged = 1u << 20;
constexpr uint32_t kMostReferences = 1u << 20;

}  // namespace

StagedCarrier* StagedFrames::FindByIndex(uint64_t index) const {
  return index < slots_.size() ? slots_[index].carrier.get() : nullptr;
}

// Writes or reads one carrier with what its constructor needs. The session of a carrier may be
// closed; the carrier then still resends its frames.
void StagedFrames::HandOverCarrier(StateStream& state, flow::CarrierNames& names,
                                   const SessionTable& sessions, SlotHandle handle) {
  auto& [carrier, generation, session] = slots_[handle.index];
  (void)generation;  // handed over before
  auto* channel = carrier == nullptr ? nullptr : const_cast<flow::Carrier*>(carrier->channel());
  SessionId id = session == nullptr ? SessionId{} : session->link.session;
  uint32_t device = carrier == nullptr ? 0 : carrier->device();
  uint32_t tenant = carrier == nullptr ? 0 : carrier->tenant();
  flow::HandOver(state, names, channel);
  state(id, device, tenant);
  if (!state.Require(channel != nullptr, "the channel of a staged carrier is gone")) return;
  channel::StagedOfSession no_session{.bytes = 0, .busy = &busy_};
  if (state.reading()) {
    session = sessions.Find(id);
    const bool known = id.value == 0 || (session != nullptr && session->link.copier != nullptr);
    if (!state.Require(known, "staged carrier of an unknown session")) return;
    if (!state.Require(channel->staged_index() == flow::Carrier::kNotStaged,
                       "staged carrier of no channel")) {
      return;
    }
    carrier = std::make_unique<StagedCarrier>(
        *channel, flow::WindowWaiter{{WorkerObject::Kind::kStagedCarrier, handle}, tenant}, device,
        session == nullptr ? no_session : session->staged_shared);
    if (session != nullptr) session->staged.push_back(carrier.get());
  }
  carrier->HandOver(state);
}

void StagedFrames::HandOver(StateStream& state, flow::CarrierNames& names,
                            const SessionTable& sessions) {
  auto& [uses, slots, busy, wants_packet] = *this;
  (void)uses, (void)wants_packet;
  (void)busy;  // a busy carrier lists itself
  const uint32_t count = state.Count(slots.size(), kMostStaged);
  state.Require(!state.reading() || slots.empty(), "staged carriers are in use");
  if (state.reading()) slots.resize(state.ok() ? count : 0);
  for (uint32_t i = 0; i < slots.size() && state.ok(); ++i) {
    state(slots[i].generation);
    if (state.Carry(slots[i].carrier != nullptr))
      HandOverCarrier(state, names, sessions, {i, slots[i].generation});
  }
}

// Writes or reads what the queue pairs do not determine: references of endpoints, and when a
// refusal may be reported again. `of_pools` has one session of each pool of the worker.
void ChannelReferences::HandOver(StateStream& state, std::span<WorkerSession* const> of_pools) {
  auto& [by_channel, pools] = *this;
  const auto pool_of = [&](SessionId id) {
    const auto found = std::ranges::find_if(
        of_pools, [&](const WorkerSession* one) { return one->link.session == id; });
    return found == of_pools.end() ? nullptr : *found;
  };
  const auto session_of = [&](Pool pool) {
    const auto found = std::ranges::find_if(
        of_pools, [&](const WorkerSession* one) { return one->link.share == pool; });
    return found == of_pools.end() ? SessionId{} : (*found)->link.session;
  };
  for (const WorkerSession* const one : of_pools) {
    auto& [sessions, endpoints, report_again] = pools[one->link.share];
    (void)sessions, (void)endpoints;  // counted when they are linked
    state(report_again);
  }
  const uint32_t channels = state.Count(by_channel.size(), kMostReferences);
  for (Slot slot = 0; slot < channels && state.ok(); ++slot) {
    std::vector<Reference> of_endpoints;
    if (!state.reading()) {
      std::ranges::copy_if(by_channel[slot], std::back_inserter(of_endpoints),
                           &Reference::by_endpoints);
    }
    state.Vector(of_endpoints, kMostReferences, [&](Reference& reference) {
      auto& [pool, queue_pairs, by_endpoints] = reference;
      (void)queue_pairs;   // counted again (Worker::HandOver)
      (void)by_endpoints;  // true for all of the list
      SessionId id = state.reading() ? SessionId{} : session_of(pool);
      state(id);
      const WorkerSession* const session = pool_of(id);
      if (!state.Require(session != nullptr, "channel reference of an unknown pool")) return;
      if (!state.reading()) return;
      pool = session->link.share;
      Adopt(pool, slot);
      BeginForEndpoints(pool, slot);
    });
  }
}

void ChannelReferences::Adopt(Pool pool, Slot channel) {
  if (pool == nullptr || pool->quota == nullptr || Has(pool, channel)) return;
  pool->quota->Adopt(tenant::Resource::kChannels);
}

}  // namespace rocegw::worker
