// SPDX-License-Identifier: Apache-2.0
#include "gateway/transport/endpoint/endpoint_group.h"

#include <optional>
#include <vector>

#include "gateway/base/mix.h"

namespace rocegw::transport {
namespace {

bool TakesReceive(const wire::ChannelFrame& frame) {
  return frame.kind == wire::FrameKind::kSend || frame.has(wire::kFrameImmediate);
}

}  // namespace

// Removes a member. The payload that it received of unfinished messages is lost, so their remaining
// frames are refused and the senders offer the whole messages again.
void EndpointGroup::Leave(const EndpointQueuePair& member, TimePoint now) {
  std::erase(members_, &member);
  std::vector<MessageName> begun;
  member.ListBegun(begun);
  for (const MessageName& message : begun) orphans_.Add(message, now);
}

EndpointQueuePair* EndpointGroup::Choose(const MessageName& message,
                                         const wire::ChannelFrame& frame, TimePoint now) {
  if (orphans_.Contains(message, now)) return nullptr;
  const bool single = frame.offset == 0 && frame.has(wire::kFrameLast);
  if (!single) {
    // Linear search: members are few, and only messages of several frames get here. A table would
    // duplicate the members' records.
    for (EndpointQueuePair* const member : members_) {
      const std::optional<uint8_t> attempt = member->Begun(message);
      if (!attempt.has_value()) continue;
      if (member->context().receives()) return member;
      // The member went to the error state with a part of this attempt; the next attempt goes to
      // another member.
      if (*attempt == message.attempt) return nullptr;
    }
  }
  switch (config_.dispatch) {
    case verbs::Dispatch::kHash:
      return ByHash(message.carrier->peer().MixInto(message.source));
    case verbs::Dispatch::kRoundRobin:
      return ByTurn(TakesReceive(frame));
    case verbs::Dispatch::kDepth:
      return ByDepth();
  }
  return nullptr;
}

// Rendezvous hashing: each sender ranks all members. When a member leaves, only its own senders
// move.
EndpointQueuePair* EndpointGroup::ByHash(uint64_t sender) const {
  EndpointQueuePair* best = nullptr;
  uint64_t most = 0;
  for (EndpointQueuePair* const member : members_) {
    if (!member->takes_messages()) continue;
    const uint64_t rank = Mix(sender ^ member->context().config.qpn.value);
    if (best != nullptr && rank <= most) continue;
    best = member;
    most = rank;
  }
  return best;
}

// Returns the next member in round-robin order that has receives, or the next one if none has.
EndpointQueuePair* EndpointGroup::ByTurn(bool takes_receive) {
  EndpointQueuePair* without = nullptr;
  for (size_t looked = 0; looked < members_.size(); ++looked) {
    EndpointQueuePair* const member = members_[turn_++ % members_.size()];
    if (!member->takes_messages()) continue;
    if (!takes_receive || member->receives_left() != 0) return member;
    if (without == nullptr) without = member;
  }
  return without;
}

EndpointQueuePair* EndpointGroup::ByDepth() {
  EndpointQueuePair* best = nullptr;
  uint32_t most = 0;
  // Members with equal numbers of receives are chosen round-robin.
  for (size_t looked = 0; looked < members_.size(); ++looked) {
    EndpointQueuePair* const member = members_[(turn_ + looked) % members_.size()];
    if (!member->takes_messages()) continue;
    const uint32_t left = member->receives_left();
    if (best != nullptr && left <= most) continue;
    best = member;
    most = left;
  }
  ++turn_;
  return best;
}

}  // namespace rocegw::transport
