// SPDX-License-Identifier: Apache-2.0
// Names of messages that had begun to arrive at members of a group that left it. The payload that a
// member received is lost, so the remaining frames of such a message are refused and its sender
// offers the whole message again. Belongs to its group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>

#include "gateway/base/time.h"
#include "gateway/flow/carrier_names.h"
#include "gateway/transport/endpoint/message_name.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

class OrphanMessages {
 public:
  // Lifetime of a name. The senders give up earlier.
  static constexpr Duration kAge = Seconds(10);
  // Limit, because programs may destroy members at any rate: as many as one member can leave.
  // Beyond it the oldest name is dropped, and its sender may have to give up.
  static constexpr size_t kMost = 1024;
  // Heap of one group at the limit, with the allocator's overhead.
  static constexpr uint64_t kMostHeapBytes = kMost * 128;

  void Add(const MessageName& name, TimePoint now) { AddUntil(name, now + kAge); }
  // Returns true if the message is one of these. Drops the names whose time is over.
  bool Contains(const MessageName& name, TimePoint now) {
    if (by_age_.empty()) return false;
    Expire(now);
    return names_.contains(name);
  }
  // Drops the messages that the channel carried.
  void OnCarrierLost(const flow::Carrier& carrier);
  size_t size() const { return by_age_.size(); }
  // Writes or reads the state (gateway/hand_over).
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& carriers);

 private:
  struct Hash {
    size_t operator()(const MessageName& name) const {
      return HashOfMessage(name.carrier, name.source, name.message);
    }
  };
  struct Orphan {
    MessageName name;
    TimePoint until;
  };

  void AddUntil(const MessageName& name, TimePoint until);
  void Expire(TimePoint now);
  void DropOldest();

  std::deque<Orphan> by_age_;  // oldest in front
  std::unordered_set<MessageName, Hash> names_;
};

}  // namespace rocegw::transport
