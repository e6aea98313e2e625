// SPDX-License-Identifier: Apache-2.0
// Group of endpoints of one session on one worker that share one address. The group chooses the
// member that receives each message; all frames of a message go to the same member. The group keeps
// no record of messages, except for those of members that left. Belongs to one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/transport/endpoint/endpoint_queue_pair.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

class EndpointGroup {
 public:
  // Time for which the group remembers messages of a member that left. Their senders give up
  // earlier.
  static constexpr Duration kOrphanAge = Seconds(10);

  explicit EndpointGroup(const verbs::GroupConfig& config) : config_(config) {}

  const verbs::GroupConfig& config() const { return config_; }
  size_t size() const { return members_.size(); }
  // Adds a member, which must outlive its membership.
  void Join(EndpointQueuePair& member) { members_.push_back(&member); }
  void Leave(const EndpointQueuePair& member, TimePoint now);
  // Returns the member that receives the frame. nullptr: no member can, and the sender must offer
  // the message again.
  EndpointQueuePair* Choose(const MessageName& message, const wire::ChannelFrame& frame);
  // Forgets messages that the channel carried; the channel is destroyed.
  void OnCarrierLost(const flow::Carrier& carrier);
  // Writes the state, or reads it into a group with the same configuration and members, in any
  // order (gateway/hand_over).
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  struct Orphan {
    MessageName message;
    TimePoint until;
  };
  EndpointQueuePair* ByHash(uint64_t sender) const;
  EndpointQueuePair* ByTurn(bool takes_receive);
  EndpointQueuePair* ByDepth();

  verbs::GroupConfig config_;
  std::vector<EndpointQueuePair*> members_;
  size_t turn_ = 0;
  std::vector<Orphan> orphans_;
};

}  // namespace rocegw::transport
