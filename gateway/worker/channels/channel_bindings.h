// SPDX-License-Identifier: Apache-2.0
// Choice of the channels that queue pairs use, within the channel limits of their pools
// (channel_references.h). Belongs to one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/channel/channel_set.h"
#include "gateway/transport/endpoint/peer.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/worker/channels/channel_references.h"
#include "gateway/worker/channels/staged_frames.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/round.h"

namespace rocegw::worker {

class ChannelBindings {
 public:
  // Parts of the worker that the object uses; they must outlive it.
  struct Uses {
    channel::ChannelSet& channels;
    StagedFrames& staged;
    SessionTable& sessions;
    ControlSender& control;
    const Round& round;
  };
  explicit ChannelBindings(const Uses& uses) : uses_(uses) {}

  // Slots of a queue pair's own channel and of one for each further path of its requests.
  struct Slots {
    std::array<uint32_t, wire::kMostPaths> slots{};
    size_t count = 0;
    std::span<const uint32_t> all() const& { return std::span(slots).first(count); }
    std::span<const uint32_t> all() const&& = delete;
  };

  // Count the sessions and endpoints of a pool.
  ChannelReferences& references() { return references_; }

  // transport::Outbox::Reach and Beside.
  flow::Carrier* Reach(transport::QpContext& qp, const transport::Peer& peer, uint32_t beside);
  flow::Carrier* Beside(transport::QpContext& qp, const flow::Carrier& carrier, uint32_t paths);
  // Binds the channel to a queue pair, or records why the queue pair uses plain RoCEv2.
  void Bind(transport::QueuePair& queue_pair, const verbs::ChannelTarget& target);
  // Returns the carrier by which the queue pair uses the channel.
  flow::Carrier& CarrierFor(const transport::QpContext& qp, channel::Channel& channel);

  // Returns the carrier by which the session's queue pairs know the channel now.
  const flow::Carrier& SeenBy(SessionId session, const channel::Channel& channel) const;

  // Returns the channels that the requests of a connected queue pair leave by.
  Slots SlotsOf(const transport::QpContext& qp) const;
  // Ends the references to the channels of `before` that the queue pair no longer uses.
  void EndUnused(const QpSlot& slot, const Slots& before);
  // Ends all references of a queue pair that is about to be destroyed.
  void EndAll(const QpSlot& slot);

 private:
  bool MayUse(transport::QpContext& qp, const channel::Channel* known);
  flow::Carrier* BeginUse(transport::QpContext& qp, channel::Channel* channel);

  const Uses uses_;
  ChannelReferences references_;
};

}  // namespace rocegw::worker
