// SPDX-License-Identifier: Apache-2.0
// Receiving half of an endpoint. It accepts messages from every sender that knows its key. A
// message of one frame needs no record; a longer one has a record until it is whole. Each message
// takes effect and is answered independently: placed, refused for now, or failed. READs and atomics
// are executed here and answered by EndpointAnswers. Belongs to one worker.
//
// A refused message is offered again as a new attempt. Late frames of an older attempt cannot
// complete it, because one of its frames was dropped; ForgetOld() drops that record.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/transport/endpoint/endpoint_answers.h"
#include "gateway/transport/endpoint/message_name.h"
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
  static constexpr Duration kOld = Seconds(10);
  // Idle time after which a message loses its receive to a message that has none.
  static constexpr Duration kIdle = Milliseconds(20);

  // `receives` and `channels` must outlive this object.
  EndpointTarget(ReceiveQueue& receives, PeerChannels& channels)
      : receives_(receives), channels_(channels), answers_(channels) {}

  void Reset();
  metrics::DropReason OnFrame(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                              const wire::ChannelFrame& frame, std::span<const uint8_t> payload,
                              bool refuse);
  PumpResult Pump(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  // Drops the records of messages that want no reply, once their bytes are placed.
  void DropSilentReplies();
  // Sends the replies only, not READ responses and atomic results.
  PumpResult PumpReplies(QpContext& qp, Outbox& outbox, TimePoint now, PumpBudget& budget);
  flow::Resend Again(QpContext& qp, Outbox& outbox, const flow::Carrier& carrier,
                     const flow::FrameRef& frame, Psn psn);
  void OnMemoryFault(QpContext& qp, const AccessTag& tag);
  void OnAtomicResult(const AccessTag& tag, uint64_t original) {
    answers_.OnAtomicResult(tag, original);
  }
  void OnCarrierLost(const flow::Carrier& carrier);
  void OnDeadline(TimePoint now) { answers_.OnDeadline(now); }
  TimePoint deadline() const { return answers_.deadline(); }

  uint32_t receives_left(const QpContext& qp) const {
    return static_cast<uint32_t>(spare_.size()) + qp.rq().Posted();
  }
  bool HasBegun(const MessageName& message) const {
    return in_flight_.contains({message.carrier, message.source, message.message});
  }
  void ListBegun(std::vector<MessageName>& begun) const;
  // Copies to the tombstone what the initiators may still ask for again.
  void Leave(EndpointTombstone& tombstone) const { answers_.Leave(tombstone); }
  // Rebuilds the reply that `frame` describes, of the endpoint `number` in the group `group`.
  static wire::ChannelFrame ReplyOf(const flow::FrameRef& frame, Qpn number, Qpn group);

  size_t in_flight() const { return in_flight_.size(); }
  // Writes or reads the state, after that of the receive queue and the channels.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  struct Key {
    const flow::Carrier* carrier = nullptr;
    uint32_t source = 0;
    uint32_t message = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      const uint64_t both = uint64_t{key.source} << 32 | key.message;
      return std::hash<uint64_t>()(both * 0x9E3779B97F4A7C15) ^
             std::hash<const void*>()(key.carrier);
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
  struct Reply {
    flow::Carrier* carrier = nullptr;  // nullptr: none is sent, the sender wants none
    Qpn to;
    // The message was addressed to the group, so the reply comes from the group.
    bool for_group = false;
    uint8_t syndrome = 0;
    uint8_t attempt = 0;
    uint32_t message = 0;
    uint32_t ticket = 0;
    uint32_t serial = 0;
    uint32_t ring_slot = 0;  // slot of the receive that completes with the reply, if `has_receive`
    bool has_receive = false;
  };

  // Opens the next receive of the queue for the record. Returns false if there is none.
  bool TakeReceive(QpContext& qp, Outbox& outbox, Record& record);
  void GiveBack(Record& record);
  void TakeFromIdle(TimePoint now);
  void ForgetOld(TimePoint now);
  bool MakeRoom(TimePoint now);
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
  bool MayReply(QpContext& qp, flow::Carrier& carrier, TimePoint now, const PumpBudget& budget);
  void RefuseForNow(QpContext& qp, flow::Carrier& carrier, const wire::ChannelFrame& frame);
  metrics::DropReason TakeRead(QpContext& qp, Outbox& outbox, flow::Carrier& carrier,
                               const wire::ChannelFrame& frame, bool refuse);

  ReceiveQueue& receives_;
  PeerChannels& channels_;
  std::unordered_map<Key, Record, KeyHash> in_flight_;
  std::vector<uint32_t> spare_;  // open receives that belong to no message
  GrowingRing<Reply> replies_;
  EndpointAnswers answers_;
  uint32_t serial_ = 0;
};

}  // namespace rocegw::transport
