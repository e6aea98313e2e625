// SPDX-License-Identifier: Apache-2.0
// Messages of one queue pair that have begun to arrive and have not had their turn, by how far they
// lie ahead of the next that takes effect. What has not come costs nothing: a peer that leaves
// numbers out does not make its receiver remember them. Belongs to its responder.
#pragma once

#include <cstdint>
#include <map>

#include "gateway/transport/incoming_message.h"

namespace rocegw::transport {

class MessagesAhead {
 public:
  bool empty() const { return messages_.empty(); }
  size_t count() const { return messages_.size(); }
  // How far the last one lies ahead, and one; 0: there is none.
  size_t reach() const { return empty() ? 0 : messages_.rbegin()->first - turn_ + 1; }

  // nullptr: nothing of it has come.
  IncomingMessage* Find(uint32_t ahead) {
    const auto found = messages_.find(turn_ + ahead);
    return found == messages_.end() ? nullptr : &found->second;
  }
  IncomingMessage& At(uint32_t ahead) { return messages_[turn_ + ahead]; }
  // The next one has had its turn.
  void Advance() {
    messages_.erase(turn_);
    ++turn_;
  }
  void clear() { messages_.clear(); }
  // What has taken effect stays known.
  void ForgetUnfinished() {
    std::erase_if(messages_, [](const auto& one) { return !one.second.done; });
  }
  // Those from `ahead` on, in their order.
  template <typename Visit>
  void ForEachFrom(size_t ahead, Visit visit) const {
    for (auto at = messages_.lower_bound(turn_ + ahead); at != messages_.end(); ++at)
      visit(at->second);
  }

 private:
  uint64_t turn_ = 0;  // of the next to take effect, in a count that does not come around
  std::map<uint64_t, IncomingMessage> messages_;
};

}  // namespace rocegw::transport
