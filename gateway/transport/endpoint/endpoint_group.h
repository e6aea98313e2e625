// SPDX-License-Identifier: Apache-2.0
// Group of endpoints of one session on one worker that share one address. The group chooses the
// member that receives each message; all frames of a message go to the same member. The group keeps
// no record of messages, except for those of members that left. Belongs to one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/transport/endpoint/orphan_messages.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

class EndpointGroup {
 public:
  // Limit of members: the group may look at all of them for one frame.
  static constexpr uint32_t kMostMembers = 64;

  explicit EndpointGroup(const verbs::GroupConfig& config) : config_(config) {}

  const verbs::GroupConfig& config() const { return config_; }
  size_t size() const { return members_.size(); }
  // Adds a member, which must outlive its membership.
  void Join(EndpointQueuePair& member) { members_.push_back(&member); }
  void Leave(const EndpointQueuePair& member, TimePoint now);
  // Returns the member that receives the frame. nullptr: no member can, and the sender must offer
  // the message again.
  EndpointQueuePair* Choose(const MessageName& message, const wire::ChannelFrame& frame,
                            TimePoint now);
  // Forgets messages that the channel carried; the channel is destroyed.
  void OnCarrierLost(const flow::Carrier& carrier) { orphans_.OnCarrierLost(carrier); }
  // Writes the state, or reads it into a group with the same configuration and members, in any
  // order (gateway/hand_over).
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  EndpointQueuePair* ByHash(uint64_t sender) const;
  EndpointQueuePair* ByTurn(bool takes_receive);
  EndpointQueuePair* ByDepth();

  verbs::GroupConfig config_;
  std::vector<EndpointQueuePair*> members_;
  size_t turn_ = 0;
  OrphanMessages orphans_;
};

}  // namespace rocegw::transport
