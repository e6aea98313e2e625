// SPDX-License-Identifier: Apache-2.0
// Receiving half of an endpoint. It accepts messages from every sender that knows its key. A
// message of one frame needs no record; a longer one has a record until it is whole. Each message
// takes effect and is answered independently: placed, refused for now, or failed. READs and atomics
// are executed here and answered by EndpointAnswers. Belongs to one worker.
//
// A refused message is offered again as a new attempt. Late frames of an older attempt cannot
// complete it, because one of its frames was dropped; ForgetOld() drops that record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/transport/endpoint/endpoint_answers.h"
#include "gateway/transport/endpoint/endpoint_replies.h"
#include "gateway/transport/endpoint/message_name.h"
#include "gateway/transport/endpoint/peer_counts.h"
#include "gateway/transport/message/incoming_message.h"
#include "gateway/transport/message/peer_channels.h"
#include "gateway/transport/pump.h"
#include "gateway/transport/queue_pair.h"
#include "gateway/transport/queues/receive_queue.h"

namespace rocegw::transport {

class EndpointTarget {
 public:
  // Limit of multi-frame messages that an endpoint receives at once.
  static constexpr size_t kMostUnderWay = 1024;
  // Number of messages of the peer gateway that has most of them that lose their places at once to
  // a gateway that has fewer by more than twice as many.
  static constexpr size_t kEvicted = 16;
  static constexpr Duration kOld = Seconds(10);
  // Idle time after which a message loses its receive to a message that has none, or in any case
  // if the receive is of a shared receive queue.
  static constexpr Duration kIdle = Milliseconds(20);
  // Shortest time between two searches of all messages for one to give up.
  static constexpr Duration kSearch = Milliseconds(1);
  // Longest time that peers can keep an endpoint from draining.
  static constexpr Duration kLongestDrain = Seconds(30);

  // Returns the most bytes of heap that an endpoint keeps for receives of a shared receive queue of
  // that size. Receives that wait for their completion are charged to the queue.
  static uint64_t HeapOfSharedReceives(uint32_t entries, uint32_t max_sge) {
    return ReceiveQueue::HeapBytes(std::min(entries, static_cast<uint32_t>(kMostUnderWay)),
                                   max_sge);
  }

  // `receives` and `channels` must outlive this object.
  EndpointTarget(ReceiveQueue& receives, PeerChannels& channels)
      : receives_(receives), channels_(channels), replies_(channels), answers_(channels) {}

  void Reset();
  metrics::DropReason OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse);
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Called in the error state, before the receive queue is flushed: no message has a receive any
  // more. Their records stay, since a group refuses the rest of their frames.
  void Flush();
  // Sends the replies only, not READ responses and atomic results.
  PumpResult PumpReplies(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget) {
    return replies_.Pump(qp, outbox, now, budget);
  }
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnMemoryFault(QpContext& qp, const AccessTag& tag);
  void OnAtomicResult(const AccessTag& tag, uint64_t original) {
    answers_.OnAtomicResult(tag, original);
  }
  void OnCarrierLost(QpContext& qp, const flow::Carrier& carrier);
  void OnDeadline(QpContext& qp, TimePoint now);
  TimePoint deadline() const {
    return Earlier(Earlier(answers_.deadline(), idle_at_), drained_by_);
  }
  // Returns receives that no message uses to the shared receive queue, once nothing is written to
  // their buffers any more.
  void OnMemoryDone(QpContext& qp);

  // Returns the number of receives that are free for new messages.
  uint32_t receives_left(const QpContext& qp) const;
  std::optional<uint8_t> Begun(const MessageName& message) const {
    const auto found = in_flight_.find(
        {const_cast<flow::Carrier*>(message.carrier), message.source, message.message});
    return found == in_flight_.end() ? std::nullopt : std::optional(found->second.attempt);
  }
  void ListBegun(std::vector<MessageName>& begun) const;
  // Copies to the tombstone what the initiators may still ask for again.
  void Leave(EndpointTombstone& tombstone) const { answers_.Leave(tombstone); }

  size_t in_flight() const { return in_flight_.size(); }
  // Returns the bytes of heap of messages in progress, of replies that wait, and of answers that
  // may be asked for again.
  size_t records_bytes() const;
  // Returns the number of messages that have begun and are not answered, and of answers that may
  // not have arrived. Refusals do not count: their messages have not begun.
  uint32_t under_way() const;
  // With `drains`, messages that have not begun are refused for now.
  void SetDrains(bool drains, TimePoint now);
  // Returns true each kLongestDrain after the endpoint began to drain.
  bool DrainIsOver(TimePoint now);
  // Forgets what peers keep from ending: parts of messages, replies that cannot leave, and answers
  // that are not acknowledged. Messages whose bytes are being placed stay until then.
  void EndDrain(QpContext& qp);
  bool drains() const { return drains_; }
  // The program wants to know when the endpoint has drained.
  void SetReport(bool report) { reports_ = report; }
  bool reports() const { return reports_; }
  // Writes or reads the state, after that of the receive queue and the channels.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  struct Key {
    flow::Carrier* carrier = nullptr;
    uint32_t source = 0;
    uint32_t message = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return HashOfMessage(key.carrier, key.source, key.message);
    }
  };
  struct Record {
    IncomingMessage message;  // `receive` is the number of its receive if `has_receive`
    uint32_t serial = 0;      // names the message in memory operations
    uint32_t ticket = 0;
    uint8_t attempt = 0;
    bool has_receive = false;
    bool for_group = false;
    TimePoint touched;
  };

  // With what a hash table and the allocator add.
  static constexpr size_t kHeapOfRecord = sizeof(std::pair<const Key, Record>) + 48;

  // Opens the next receive of the queue for the record. Returns false if there is none.
  bool TakeReceive(QpContext& qp, Outbox& outbox, Record& record);
  void GiveBack(QpContext& qp, Record& record);
  void TakeFromIdle(QpContext& qp, TimePoint now);
  void ForgetOld(QpContext& qp, TimePoint now);
  // Returns the time when the record is to be looked at.
  TimePoint IdleAt(const QpContext& qp, const Record& record) const;
  // Makes a place for a message of the carrier. Returns false if there is none.
  bool MakeRoom(QpContext& qp, const flow::Carrier& carrier, TimePoint now);
  void Evict(QpContext& qp, const wire::Gid& peer);
  static bool MaySearch(TimePoint& next, TimePoint now);
  using Records = std::unordered_map<Key, Record, KeyHash>;
  Records::iterator Erase(Records::iterator at);
  void Take(QpContext& qp, Outbox& outbox, Record& record, const wire::ChannelFrame& frame,
            std::span<const uint8_t> payload);
  void TakeSend(QpContext& qp, Outbox& outbox, Record& record, const wire::ChannelFrame& frame,
                std::span<const uint8_t> payload);
  void TakeWrite(QpContext& qp, Outbox& outbox, Record& record, const wire::ChannelFrame& frame,
                 std::span<const uint8_t> payload);
  void Place(QpContext& qp, Outbox& outbox, Record& record, uint32_t offset,
             std::span<const uint8_t> bytes, bool publish);
  void Finish(QpContext& qp, Outbox& outbox, Record& record, flow::Carrier& carrier,
              const wire::ChannelFrame& frame);
  void Answer(QpContext& qp, flow::Carrier& carrier, const wire::ChannelFrame& frame,
              uint8_t syndrome, const Record& record);
  void RefuseForNow(QpContext& qp, flow::Carrier& carrier, const wire::ChannelFrame& frame);
  metrics::DropReason TakeRead(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                               const wire::ChannelFrame& frame, bool refuse);

  ReceiveQueue& receives_;
  PeerChannels& channels_;
  Records in_flight_;
  PeerCounts places_;  // messages in `in_flight_` by peer gateway
  // Open receives that belong to no message. Those of a shared receive queue wait here for memory
  // operations only: other queue pairs need them.
  std::vector<uint32_t> spare_;
  EndpointReplies replies_;
  EndpointAnswers answers_;
  uint32_t serial_ = 0;
  // Time to look for idle messages: those of a shared receive queue lose their receives, since
  // messages whose senders died would starve other queue pairs; while the endpoint drains, old ones
  // are forgotten, since it would wait for them for ever. kNever: there are none.
  TimePoint idle_at_ = kNever;
  // Times of the next searches (kSearch) for messages that lose their receives, or are forgotten.
  TimePoint idle_search_at_;
  TimePoint old_search_at_;
  bool drains_ = false;
  bool reports_ = false;
  TimePoint drained_by_ = kNever;  // kNever: the endpoint does not drain, or is in the error state
};

}  // namespace rocegw::transport
