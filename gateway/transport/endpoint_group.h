// SPDX-License-Identifier: Apache-2.0
// Endpoints of one session on one worker that are addressed as one: to whom of them each message
// goes. A message stays with the member that has begun to receive it. Knows members, not messages:
// those are theirs, but for the ones that a member left behind. Belongs to one worker.
#pragma once

#include <cstdint>
#include <vector>

#include "gateway/transport/queue_pair.h"
#include "gateway/verbs/qp_config.h"

namespace rocegw::transport {

class EndpointGroup {
 public:
  // So long what a member has left behind is remembered: its sender has given up by then.
  static constexpr Duration kOrphanAge = Seconds(10);

  explicit EndpointGroup(const verbs::GroupConfig& config) : config_(config) {}

  const verbs::GroupConfig& config() const { return config_; }
  size_t size() const { return members_.size(); }
  // A member outlives its membership.
  void Join(QueuePair& member) { members_.push_back(&member); }
  void Leave(const QueuePair& member, TimePoint now);
  // nullptr: nobody is there for it, and it must be offered again.
  QueuePair* Choose(const MessageName& message, const wire::ChannelFrame& frame);
  // That channel is no more, nor what came by it.
  void OnCarrierLost(const flow::Carrier& carrier);

 private:
  struct Orphan {
    MessageName message;
    TimePoint until;
  };
  QueuePair* ByHash(uint64_t sender) const;
  QueuePair* ByTurn(bool takes_receive);
  QueuePair* ByDepth();

  verbs::GroupConfig config_;
  std::vector<QueuePair*> members_;
  size_t turn_ = 0;
  std::vector<Orphan> orphans_;
};

}  // namespace rocegw::transport
