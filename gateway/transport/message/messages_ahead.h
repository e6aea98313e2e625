// SPDX-License-Identifier: Apache-2.0
// Messages of one queue pair that have begun to arrive and have not taken effect, by their distance
// from the next message to take effect. Message numbers without a frame cost nothing: a peer that
// leaves out numbers cannot make its receiver use memory. Belongs to its responder.
#pragma once

#include <cstdint>
#include <map>

#include "gateway/transport/message/incoming_message.h"

namespace rocegw::transport {

class MessagesAhead {
 public:
  bool empty() const { return messages_.empty(); }
  size_t count() const { return messages_.size(); }
  // Returns the distance of the last message plus one; 0: there is none.
  size_t reach() const { return empty() ? 0 : messages_.rbegin()->first - turn_ + 1; }

  // Returns nullptr if no frame of the message has arrived.
  IncomingMessage* Find(uint32_t ahead) {
    const auto found = messages_.find(turn_ + ahead);
    return found == messages_.end() ? nullptr : &found->second;
  }
  IncomingMessage& At(uint32_t ahead) { return messages_[turn_ + ahead]; }
  // Erases the next message, which has taken effect.
  void Advance() {
    messages_.erase(turn_);
    ++turn_;
  }
  void clear() { messages_.clear(); }
  // Erases messages that have not taken effect, and keeps those that have.
  void ForgetUnfinished() {
    std::erase_if(messages_, [](const auto& one) { return !one.second.done; });
  }
  // Visits the messages from distance `ahead` on, in order.
  template <typename Visit>
  void ForEachFrom(size_t ahead, Visit visit) const {
    for (auto at = messages_.lower_bound(turn_ + ahead); at != messages_.end(); ++at)
      visit(at->second);
  }
  // Writes or reads the messages; `each` hands over one.
  template <typename Stream, typename F>
  void HandOver(Stream& state, uint32_t most, F each) {
    auto& [turn, messages] = *this;
    state(turn);
    const uint32_t count = state.Count(messages.size(), most);
    if (state.reading()) messages.clear();
    auto at = messages.begin();
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      const uint64_t number = state.Carry(state.reading() ? 0 : at->first);
      if (state.reading()) at = messages.try_emplace(messages.end(), number);
      state.Require(number >= turn && number - turn <= most, "message is too far ahead");
      each(at->second);
      ++at;
    }
    state.Require(messages.size() == count, "messages have the same number");
  }

 private:
  uint64_t turn_ = 0;  // key of the next message to take effect; 64 bits, so it never wraps around
  std::map<uint64_t, IncomingMessage> messages_;
};

}  // namespace rocegw::transport
