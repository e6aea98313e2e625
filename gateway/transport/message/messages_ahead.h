// SPDX-License-Identifier: Apache-2.0
// Messages of one queue pair that have begun to arrive and have not taken effect, by their distance
// from the next message to take effect, and the bytes that they have placed. Message numbers
// without a frame cost nothing: a peer that leaves out numbers cannot make its receiver use memory.
// Belongs to its responder.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gateway/transport/message/incoming_message.h"
#include "gateway/transport/message/placed_ranges.h"

namespace rocegw::transport {

class MessagesAhead {
 public:
  bool empty() const { return messages_.empty(); }
  size_t count() const { return messages_.size(); }
  // Returns the bytes of heap of the records.
  size_t heap_bytes() const {
    return messages_.size() * kHeapOfMessage + placed_.size() * PlacedRanges::kHeapOfRange;
  }

  // Returns nullptr if no frame of the message has arrived.
  IncomingMessage* Find(uint32_t ahead) {
    const auto found = messages_.find(turn_ + ahead);
    return found == messages_.end() ? nullptr : &found->second;
  }
  IncomingMessage& At(uint32_t ahead) { return messages_[turn_ + ahead]; }
  // Erases the next message, which has taken effect.
  void Advance() {
    if (const auto first = messages_.find(turn_); first != messages_.end()) {
      if (!placed_.empty()) placed_.Forget(turn_, WholeOf(first->second));
      messages_.erase(first);
    }
    if (empty()) placed_.clear();
    ++turn_;
  }
  void clear() {
    messages_.clear();
    placed_.clear();
  }
  // Erases messages that have not taken effect, and keeps those that have. All placed bytes may be
  // overwritten then: the erased messages come again, and a message that took effect early is of no
  // order with those before it.
  void ForgetUnfinished() {
    std::erase_if(messages_, [](const auto& one) { return !one.second.done; });
    placed_.clear();
  }
  // The WRITE at distance `ahead` places `range` (client addresses). Sets `pieces` to the parts
  // that no later message has placed. Returns false if the receiver can keep no record of that.
  bool Place(uint32_t ahead, ByteRange range, std::vector<ByteRange>& pieces) {
    // Frames of older messages than the next one do not come any more.
    if (placed_.Place(turn_ + ahead, range, ahead != 0, pieces)) return true;
    // Ranges of such messages may be left. A look at all is due once in so many messages only.
    if (turn_ < swept_ + kSweepEvery) return false;
    swept_ = turn_;
    placed_.ForgetBefore(turn_);
    return placed_.Place(turn_ + ahead, range, ahead != 0, pieces);
  }
  // Returns true if a message after the one at distance `ahead` has placed bytes of `range`.
  bool PlacedAfter(uint32_t ahead, ByteRange range) const {
    return placed_.PlacedAfter(turn_ + ahead, range);
  }
  bool has_placed() const { return !placed_.empty(); }
  // Visits the messages from distance `ahead` on, in order.
  template <typename Visit>
  void ForEachFrom(size_t ahead, Visit visit) const {
    for (auto at = messages_.lower_bound(turn_ + ahead); at != messages_.end(); ++at)
      visit(at->second);
  }
  // Writes or reads the messages; `each` hands over one and the ranges that it has placed.
  template <typename Stream, typename F>
  void HandOver(Stream& state, uint32_t most, F each) {
    auto& [turn, messages, placed, swept] = *this;
    state(turn);
    if (state.reading()) swept = turn;
    std::map<uint64_t, std::vector<ByteRange>> ranges;
    placed.ForEach([&](uint64_t message, ByteRange range) { ranges[message].push_back(range); });
    if (state.reading()) placed.clear();
    std::vector<ByteRange> pieces;
    const uint32_t count = state.Count(messages.size(), most);
    if (state.reading()) messages.clear();
    auto at = messages.begin();
    for (uint32_t i = 0; i < count && state.ok(); ++i) {
      const uint64_t number = state.Carry(state.reading() ? 0 : at->first);
      if (state.reading()) at = messages.try_emplace(messages.end(), number);
      state.Require(number >= turn && number - turn <= most, "message is too far ahead");
      std::vector<ByteRange>& own = ranges[number];
      each(at->second, own);
      // A range too many, of a gateway that had no limit, is left out.
      for (size_t k = 0; state.reading() && k < own.size(); ++k)
        placed.Place(number, own[k], true, pieces);
      ++at;
    }
    state.Require(messages.size() == count, "messages have the same number");
  }

 private:
  // With what a tree and the allocator add.
  static constexpr size_t kHeapOfMessage = sizeof(std::pair<const uint64_t, IncomingMessage>) + 48;

  static ByteRange WholeOf(const IncomingMessage& message) {
    return {message.local, message.local + message.length};
  }

  uint64_t turn_ = 0;  // key of the next message to take effect; 64 bits, so it never wraps around
  std::map<uint64_t, IncomingMessage> messages_;
  PlacedRanges placed_;
  static constexpr uint64_t kSweepEvery = 64;
  uint64_t swept_ = 0;  // turn of the last look at all ranges
};

}  // namespace rocegw::transport
